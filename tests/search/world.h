// A job of the roles' own code in a simulated world, and what must be true of it.
#ifndef KEELSON_TESTS_SEARCH_WORLD_H_
#define KEELSON_TESTS_SEARCH_WORLD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "tests/search/scenario.h"

namespace keelson {

struct Verdict {
  // The rule that was broken and how, "progress: ..."; empty: none.
  std::string violation;
  uint64_t trace = 0;
  int64_t choices = 0;
  absl::Duration time;  // virtual
};

// Plays the scenario until its job is done or a rule is broken. The rules, by the words with which
// a violation begins:
// - counts: after the job every element of the model is what the records say. In synchronous mode
//   each counts once, otherwise at least once and at most as often as it was computed. A server
//   that ends alone loses what its shard had since its snapshot, unless it was asked to, and so
//   does a host, be it of a collective or of a hybrid cluster, with the only copy of a shard. In
//   hybrid clusters a lost server takes nothing of the variables away, and a lost host nothing of
//   the table. In jobs with slots values and slots are those of a job to which nothing has
//   happened. Where the mode changes, the same of all records together: each step counts as one.
// - mode: a change of the mode that was answered is in force at the end, if a server lives since
//   that the chief had called (mode_rule.h).
// - state: no job state that a chief persists has a record twice, or grows with each membership.
// - handing: no push is applied of a step that another worker was given (handing_rule.h).
// - fencing: no server obeys, and no snapshot is committed by, a chief that was replaced
//   (fencing_rule.h).
// - waiting: where no threads are stalled, the chief keeps no call longer than its caller asked it
//   to (waiting_rule.h).
// - initial: after the first commit no shard is given initial values.
// - copies: no shard of a host is made of a snapshot unless a process has ended, not by itself,
//   that had the only copy of one (copies_rule.h). Those of a hybrid cluster's servers have one
//   copy. Where hosts register, one that has not registered with the newest leader for longer than
//   that waits counts as one that has ended.
// - score: every evaluation is of a committed snapshot and its values, none is scored twice unless
//   its claim has ended, and the job's last one is scored (evaluation_rule.h).
// - read: rows of the table that a worker reads have whole updates, and none of theirs alone
//   (record_rows.h).
// - snapshot: after the first commit there is always one that can be opened, and the newest of
//   these is whole, of one round, and has no traces of workers that are over (snapshot_rule.h).
//   With a table every row is what its number of updates says, and each shard's rows and variables
//   have the same pushes and rounds (record_rows.h). A power cut may take the first one away while
//   it is being committed, that is before any gradient is computed.
// - end: no role gives up for good.
// - progress: the job ends within two minutes of the last fault's end.
// `log`: the roles' logs are written to standard error. Whatever was killed stays in memory, so the
// process must end soon afterwards, by _exit.
Verdict Play(const Scenario& scenario, bool log);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_WORLD_H_
