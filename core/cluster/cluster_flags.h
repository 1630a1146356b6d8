// The cluster from flags, environment, or both.
#ifndef KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
#define KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_spec.h"

namespace keelson {

// Values of the flags with these names. The hosts are lists of "host:port" in task order, as
// ExpandHosts takes them (host_pattern.h). Each main defines the flags and fills this in.
struct ClusterFlags {
  std::string job_name;  // empty: the program's role
  int task_index = -1;   // -1: absent
  std::string ps_hosts;
  std::string worker_hosts;
  std::string chief_hosts;
  std::string evaluator_hosts;
  int port = 0;  // to listen on; 0: the port of the own address
};

// Values of the environment's variables; nothing: not set.
struct ClusterEnvironment {
  std::optional<std::string> tf_config;
  // JOB_COMPLETION_INDEX: a pod's index in a Kubernetes Job whose completionMode is Indexed.
  std::optional<std::string> completion_index;

  static ClusterEnvironment OfProcess();
};

// The cluster as the program of role `binary_role` sees it, validated.
//
// Flags complete a TF_CONFIG that lacks addresses; values given in both must agree. Flags that do
// not list the workers give a sparse cluster. Where TF_CONFIG gives no cluster, the index is that
// of --task_index, else JOB_COMPLETION_INDEX; the chief has index 0, an evaluator without one too.
// A ps needs only its index. With no hosts given at all the chief runs alone and the evaluator
// watches its model directory (`distributed` false).
//
// INVALID_ARGUMENT: every error of ParseTfConfig, ExpandHosts and ClusterSpec::Validate; a flag
// that contradicts TF_CONFIG (the text has both values); a malformed address; --job_name,
// --task_index or JOB_COMPLETION_INDEX that does not fit; --port outside 0..65535; a ps or a
// worker without any cluster. UNAVAILABLE: that of ParseTfConfig.
absl::StatusOr<ClusterSpec> ResolveCluster(Role binary_role, const ClusterFlags& flags,
                                           const ClusterEnvironment& environment);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
