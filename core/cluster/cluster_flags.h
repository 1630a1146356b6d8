// The cluster from flags, environment, or both.
#ifndef KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
#define KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/rank_environment.h"

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
  std::string
      announce_host;  // where others reach a task that registers; empty: as its leader sees it
};

// Values of the environment's variables; nothing: not set.
struct ClusterEnvironment {
  std::optional<std::string> tf_config = {};
  // JOB_COMPLETION_INDEX: a pod's index in a Kubernetes Job whose completionMode is Indexed.
  std::optional<std::string> completion_index = {};
  RankEnvironment ranks = {};

  static ClusterEnvironment OfProcess();
};

// The cluster as the program of role `binary_role` sees it, validated. It comes from the first that
// gives one: flags and TF_CONFIG; then, for programs that train, what ParseRankEnvironment reads.
// ClusterSpec::ignored has the variables of launchers that have no say in it.
//
// Flags complete a TF_CONFIG that lacks addresses; values given in both must agree. Flags that do
// not list the workers give a sparse cluster. Where TF_CONFIG gives no cluster, the index is that
// of --task_index, else JOB_COMPLETION_INDEX; the chief has index 0, an evaluator without one too.
// Workers that are listed without any ps are a collective cluster, in which the program `worker`
// may be the chief too (ClusterSpec::RunBy): task.type or --job_name says so. A ps needs only its
// index. With no hosts given at all the chief runs alone and the evaluator watches its model
// directory (`distributed` false).
//
// Where a launcher numbers the processes, --chief_hosts replaces its address of the leader, and
// --evaluator_hosts adds evaluators; hosts of ps or workers make the cluster that of the flags. The
// program `worker` runs every rank, `chief` rank 0.
//
// INVALID_ARGUMENT: every error of ParseTfConfig, ParseRankEnvironment, ExpandHosts and
// ClusterSpec::Validate; a flag that contradicts TF_CONFIG or the rank (the text has both values);
// a malformed address; --announce_host of a task that does not register, or not as a host's;
// --job_name, --task_index or JOB_COMPLETION_INDEX that does not fit; --port
// outside 0..65535, or another one than the own address's where that follows from the leader's; a
// ps or a worker without any cluster; a rank other than 0 for the chief.
//
// UNAVAILABLE: those of ParseTfConfig and ParseRankEnvironment.
absl::StatusOr<ClusterSpec> ResolveCluster(Role binary_role, const ClusterFlags& flags,
                                           const ClusterEnvironment& environment);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CLUSTER_FLAGS_H_
