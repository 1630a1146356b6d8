// The tasks of a job, as one task sees them: the common form of TF_CONFIG, flags and a job without
// a cluster.
#ifndef KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_
#define KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/cluster/task.h"

namespace keelson {

// Task index -> "host:port".
using TaskAddresses = std::map<int, std::string>;

struct ClusterSpec {
  Task self;
  TaskAddresses chief;
  TaskAddresses ps;
  TaskAddresses workers;
  TaskAddresses evaluators;

  // False: no cluster at all. A chief then runs every role in its own process, and an evaluator
  // only watches the model directory.
  bool distributed = false;

  // Tasks that are not listed are unknown rather than absent, as in the TF_CONFIG of a TFJob with
  // enableDynamicWorker. Such a cluster is taken to have a chief, which workers learn from a ps;
  // listing the workers by flag makes it an ordinary cluster, led by worker 0 if no chief is named.
  bool sparse = false;

  // How many processes train, where a launcher numbers them and lists none (rank_environment.h).
  // Only the leader's address is known, and it alone is listed; the others listen on any free port,
  // and those that host a shard register with it (ChiefService.AnnounceHost). Nothing: the cluster
  // lists its tasks.
  std::optional<int> world_size;
  // With how few processes, the leader included, the launcher lets the job train: all of them
  // unless it says less. 0: no launcher numbers them, and all that are listed are needed.
  int min_workers = 0;
  // The tasks that train are listed by addresses that follow from the leader's
  // (peer_addresses.h). The launcher has said where that one is alone.
  bool derived_addresses = false;

  // Where the cluster comes from: "TF_CONFIG", "flags", "RANK and WORLD_SIZE" …; empty without one.
  std::string source;
  // Variables of other launchers that are set, and have no effect.
  std::vector<std::string> ignored;

  // The port to listen on instead of the own address's; 0: none given.
  int listen_port = 0;
  // Where others reach this task, if it registers with a leader: a name, or an address, of IPv6 in
  // brackets; empty: as the leader sees it.
  std::string announced_host;

  // Tasks that are not listed register with the leader (`world_size`).
  bool peers_register() const { return world_size.has_value(); }

  // Worker 0 leads, because the cluster has no chief.
  bool chief_is_worker() const;
  // This task leads the job: it is the chief, or worker 0 of a cluster without one.
  bool IsChief() const;

  // A job without parameter servers, as this task sees it: every task that trains, the chief too,
  // also hosts a shard of the variables. The cluster is not sparse, and lists no ps;
  // this task is chief, worker or evaluator.
  bool collective() const;
  // The tasks that host the shards of a collective cluster, shard 0's first: the chief if there is
  // one, then the workers by index; where processes are numbered the first `min_workers` by rank,
  // for the others may come and go. Empty in any other cluster
  // (ShardLayout in core/config has the hosts of any).
  std::vector<Task> ShardHosts() const;
  // The program of role `program` runs this task: every program those of its own role, the worker's
  // also the chief of a collective cluster, which trains as the workers do, and the chief's also a
  // worker 0 that has rank 0.
  bool RunBy(Role program) const;

  // The leader's address; none when it is not known (sparse) or there is no cluster.
  std::optional<std::string> ChiefAddress() const;
  // This task's own entry, or the only entry of its role; only its own where peers register.
  std::optional<std::string> SelfAddress() const;
  // The host of SelfAddress; empty: there is none, or it is a number.
  std::string SelfHostName() const;
  // Where this task's server binds: 0.0.0.0 and the port of SelfAddress (2222 without one, any free
  // one where this task registers with a leader). The host is kept when it is a number or
  // localhost; a name may not resolve yet at start.
  std::string ListenAddress() const;

  const TaskAddresses& addresses(Role role) const;
  TaskAddresses& addresses(Role role);

  // One line for the start of the log:
  // "role=worker-1 world: chief=1 ps=2 worker=2 evaluator=1, from TF_CONFIG, led by chief-0 at
  // host:2222"; without servers "chief=1 worker=2 evaluator=0 without servers"; where peers
  // register "world: 4 processes without servers"; with `derived_addresses` "worker=4 evaluator=0
  // without servers, 2 processes suffice, from …, led by worker-0 at host:2222 (the others'
  // addresses follow)"; with `ignored` "from TF_CONFIG (RANK is set too, and ignored)".
  std::string ToString() const;

  // Checks that the cluster has what this task needs. INVALID_ARGUMENT: the chief or a worker of a
  // sparse cluster knows no ps; the ps are not numbered 0..n-1; an address is malformed or given to
  // two tasks.
  absl::Status Validate() const;
};

// "chief", "master" (the chief's legacy name), "ps", "worker", "evaluator", in any case.
std::optional<Role> ParseRole(absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_
