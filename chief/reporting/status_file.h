// The text of MODEL_DIR/status.json: the state of the job and its tasks, for programs and for the
// dashboard.
#ifndef KEELSON_CHIEF_REPORTING_STATUS_FILE_H_
#define KEELSON_CHIEF_REPORTING_STATUS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/reporting/task_figures.h"
#include "chief/servers/server_state.h"
#include "chief/servers/snapshotter.h"

namespace keelson {

// The process that writes the file, and those before it.
struct ChiefIdentity {
  Task task;
  std::string peer;    // "host:pid"
  absl::Time since;    // when this process began
  int restarts = 0;    // chiefs before this one
  absl::Time started;  // when the first of them began
};

// The content of the file. References are valid during the call.
struct StatusReport {
  absl::Time now;
  const ChiefIdentity& chief;
  const CoordinatorStatus& job;
  const TaskFigures& tasks;
  const std::vector<ServerView>& servers;
  const SnapshotFigures& snapshots;
  // "ps-1 at host:port" of servers that have not answered yet.
  std::vector<std::string> missing_servers;
  // Workers and evaluators that the cluster's description names.
  std::vector<Task> expected_members = {};
  double learning_rate = 0;    // at the job's step
  double steps_per_epoch = 0;  // 0: unknown
};

// One line of JSON. Times are seconds since the epoch; a number that is not finite is null. Fields:
//   time                      when it was written
//   started                   when the job's first chief began
//   phase, error              as in JobStatus; "error" is empty but for FAILED
//   mode                      as ConsistencyMode::ToString
//   end_reason                why training ends early; empty: it does not
//   missing_workers           so many more tasks have to train before a step is begun
//   step, max_steps, epoch, snapshot_step, learning_rate, steps_per_epoch
//   stream                    of a stream, which has no epoch, and max_steps only where that ends
//                             it: {file, done_records, known_records, ended}, see StreamStatus
//   snapshot                  see SnapshotFigures: {age_seconds, write_seconds, bytes,
//                             cut_microseconds, written, failures, error}; age_seconds is absent
//                             while there is none
//   diverging             training's loss is a multiple of what it was (DivergenceWatch)
//   loss, steps_per_second, examples_per_second, eta_seconds, staleness, credit_wait_seconds,
//   pushed_bytes_per_second, pulled_bytes_per_second
//                             means of the newest interval; absent before the first. The end in
//                             eta_seconds is max_steps, whatever end_reason says
//   step_seconds              likewise: where a step's time went, {input, pull, compute, push}
//   chief                     {task, peer, since, restarts}; restarts: chiefs before
//   members                   list of {task, role, index, peer, state, since, restarts, device};
//                             state as MemberStateName, since when it has it, device where the
//                             member told it. A worker that has
//                             worked for this chief: steps, examples, push_retries, row_ids {all,
//                             distinct} (sums) and staleness {mean, max, bounds, counts}; counts
//                             (sums) has one more than bounds. While it is alive, of its newest
//                             interval: steps_per_second, examples_per_second,
//                             pushed_bytes_per_second, pulled_bytes_per_second, step_seconds,
//                             credit_wait_seconds, and staleness.mean. An expected one that never
//                             registered with this chief or those before has {task, role, index,
//                             state, since, restarts} only, its state is "waiting", and since is
//                             when this chief began
//   servers                   list of {task, address, state, since, restarts}, and once it has
//                             answered: shard_step, value_bytes, slot_bytes, clients, with tables
//                             `tables`, a list of {name, rows, bytes, ghosts,
//                             refused_rows, admitted_rows, expired_rows, evicted_rows, looked_up,
//                             looked_up_absent} as TablePartStatus has them, and
//                             while it is alive pushed_bytes_per_second, pulled_bytes_per_second;
//                             state as ServerKindName, restarts as this chief has seen them
//   tables                    of a job that has some: list of the same, over the servers' newest
//                             answers, and balance; see TableTotal; row_ids {all, distinct}, of
//                             all workers' steps; once there are any hottest, a list of
//                             {id, pushes, error}, where id is a text
//   waiting_for               list of missing servers; only while WAITING_FOR_SERVERS
std::string StatusJson(const StatusReport& report);

// Adds what a predecessor's status file says: `started`, and one restart more. Changes nothing if
// the text is no status file.
ChiefIdentity AfterPredecessor(ChiefIdentity chief, absl::string_view predecessor_status);

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_STATUS_FILE_H_
