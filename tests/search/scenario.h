// What a schedule of the search consists of: a job, and the faults that befall it.
#ifndef KEELSON_TESTS_SEARCH_SCENARIO_H_
#define KEELSON_TESTS_SEARCH_SCENARIO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/cluster/consistency.h"
#include "tests/search/network.h"
#include "tests/search/record_model.h"
#include "tests/search/storage.h"

namespace keelson {

// The process of a node reaches a point for the time number `number`.
struct SimTrigger {
  size_t node = 0;
  std::string what;  // SimPoint::what
  SimPoint::When when = SimPoint::When::kSend;
  int64_t number = 1;
};

// A fault takes place at a time, or at a point that a node reaches, and lasts for a while.
struct SimFault {
  enum class Kind {
    kKill,      // the node's process; another one is started when the fault ends
    kKillAt,    // before or after the operation number `operation` of the node, of its first life
    kFreeze,    // the node's process runs no thread
    kReplace,   // as kFreeze, and another process takes the node's place at once
    kStop,      // the node's process is asked to stop, as by SIGTERM; another one is started
    kStopAll,   // all are
    kSetMode,   // the chief is asked to change to `mode`, until it answers
    kCut,       // messages from the node to `other` are lost, and back if `both`
    kSlow,      // they take up to `length`
    kLoss,      // one message in twenty is lost
    kStorage,   // `storage`
    kPowerCut,  // of all nodes; what was not synced is lost
    kErase,     // of all files, which no search draws: no job survives it
  };
  Kind kind = Kind::kKill;
  absl::Duration at;
  // Of the points from `at` on; one that is not reached within kTriggerWindow causes nothing.
  std::optional<SimTrigger> trigger;
  absl::Duration length;
  size_t node = 0;
  size_t other = 0;
  bool both = false;
  int64_t operation = 0;
  StorageFault storage = StorageFault::kNone;
  ConsistencyMode mode = {};
};

inline constexpr absl::Duration kTriggerWindow = absl::Seconds(4);

struct Scenario {
  uint64_t seed = 0;
  std::string profile;  // of its faults
  RecordJob job;
  size_t servers = 1;
  size_t workers = 1;
  // There are no servers: chief and workers train, and each hosts a shard (docs/collective.md).
  bool collective = false;
  // Of a collective cluster: it lists the first process alone. The others listen at any port, and
  // register with it (ADR 0045).
  bool registers = false;
  // The servers hold the table, and the workers, each of which hosts a shard, all else (ADR 0046).
  bool hybrid = false;
  size_t evaluators = 0;
  // They write and read their parts of snapshots themselves; otherwise the chief does.
  bool servers_write = true;
  double switching = 0.1;
  // See FiberScheduler::SetStalls.
  double stall = 0;
  absl::Duration longest_stall;
  double repetition = 0;
  double slow_share = 0;
  absl::Duration slow = absl::Milliseconds(10);
  // The longest time that a worker computes a step.
  absl::Duration step_time;
  // The longest time that an evaluator scores a snapshot.
  absl::Duration score_time;
  std::vector<SimFault> faults;
  // From then on the job has to make progress, whatever still lasts.
  absl::Duration faults_end;

  // Nodes: the chief, then the servers, then the workers, then the evaluators. `servers` is 0 in
  // collective clusters. Of hybrid ones the servers' shards come before the workers'.
  size_t nodes() const { return 1 + servers + workers + evaluators; }
  bool IsServer(size_t node) const { return node > 0 && node <= servers; }
  bool IsWorker(size_t node) const { return node > servers && node <= servers + workers; }
  size_t shards() const {
    if (collective) return 1 + workers;
    return hybrid ? servers + workers : servers;
  }
  // The node at which a shard is at home.
  size_t HomeOf(size_t shard) const { return collective ? shard : 1 + shard; }
  // The process of the node holds a part of the model.
  bool HasShard(size_t node) const { return IsServer(node) || HostsShard(node); }
  // It does so beside training, and its shard may be at others, too.
  bool HostsShard(size_t node) const { return (collective || hybrid) && Trains(node); }
  bool IsHostedShard(size_t shard) const { return HostsShard(HomeOf(shard)); }
  size_t trainers() const { return workers + (collective ? 1 : 0); }
  bool Trains(size_t node) const { return IsWorker(node) || (collective && node == 0); }
  // One host is asked to stop, not the leader, others stay, and nothing else happens: the leader
  // knows in time.
  bool OnlyAHostLeaves() const;
  bool IsEvaluator(size_t node) const { return node > servers + workers && node < nodes(); }
  // Who asks the chief for other modes, and whom no fault befalls.
  size_t user() const { return nodes(); }
  std::string NameOf(size_t node) const;
  // A line, and one for each fault.
  std::string ToString() const;
};

// The scenario of a seed, with the faults whose bit is set in `faults`.
Scenario MakeScenario(uint64_t seed, uint64_t faults);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_SCENARIO_H_
