// The cluster from flags, TF_CONFIG, or both.
#ifndef KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
#define KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_spec.h"

namespace keelson {

// Values of the flags with these names. The hosts are comma-separated lists of "host:port" in
// task order. Each main defines the flags and fills this in.
struct ClusterFlags {
  std::string job_name;  // empty: the program's role
  int task_index = -1;   // -1: absent
  std::string ps_hosts;
  std::string worker_hosts;
  std::string chief_hosts;
  std::string evaluator_hosts;
  int port = 0;  // to listen on; 0: the port of the own address
};

// The cluster as the program of role `binary_role` sees it, validated.
//
// Flags complete a TF_CONFIG that lacks addresses; where both speak they must agree. Flags that do
// not list the workers give a sparse cluster. The chief and the evaluator have index 0. A ps needs
// no more than --task_index. With no hosts given at all the chief runs alone and the evaluator
// watches its model directory (`distributed` false).
//
// INVALID_ARGUMENT: every error of ParseTfConfig and ClusterSpec::Validate; a flag that
// contradicts TF_CONFIG (the text has both values); a malformed list; --job_name or --task_index
// that does not fit; --port outside 0..65535; a ps or a worker without any cluster.
absl::StatusOr<ClusterSpec> ResolveCluster(Role binary_role, const ClusterFlags& flags,
                                           std::optional<std::string> tf_config);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
