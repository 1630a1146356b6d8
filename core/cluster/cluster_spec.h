// The tasks of a job, as one task sees them: the common form of TF_CONFIG, flags and a job without
// a cluster.
#ifndef KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_
#define KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_

#include <map>
#include <optional>
#include <string>

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

  // The port to listen on instead of the own address's; 0: none given.
  int listen_port = 0;

  // Worker 0 leads, because the cluster has no chief.
  bool chief_is_worker() const;
  // This task leads the job: it is the chief, or worker 0 of a cluster without one.
  bool IsChief() const;

  // The leader's address; none when it is not known (sparse) or there is no cluster.
  std::optional<std::string> ChiefAddress() const;
  // This task's own entry, or the only entry of its role.
  std::optional<std::string> SelfAddress() const;
  // The host of SelfAddress; empty: there is none, or it is a number.
  std::string SelfHostName() const;
  // Where this task's server binds: 0.0.0.0 and the port of SelfAddress (2222 without one). The
  // host is kept when it is a number or localhost; a name may not resolve yet at start.
  std::string ListenAddress() const;

  const TaskAddresses& addresses(Role role) const;
  TaskAddresses& addresses(Role role);

  // One line for the start of the log:
  // "role=worker-1 world: chief=1 ps=2 worker=2 evaluator=1 led by chief-0 at host:2222".
  std::string ToString() const;

  // Checks that the cluster has what this task needs. INVALID_ARGUMENT: the chief or a worker knows
  // no ps; the ps are not numbered 0..n-1; an address is malformed or given to two tasks.
  absl::Status Validate() const;
};

// "chief", "master" (the chief's legacy name), "ps", "worker", "evaluator", in any case.
std::optional<Role> ParseRole(absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_CLUSTER_SPEC_H_
