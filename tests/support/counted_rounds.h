// Synchronous steps that are counted: every contribution to one has another gradient, and those of
// one attempt differ from those of the next, so that a sum of the wrong contributions is a wrong
// sum.
#ifndef KEELSON_TESTS_SUPPORT_COUNTED_ROUNDS_H_
#define KEELSON_TESTS_SUPPORT_COUNTED_ROUNDS_H_

#include <cstdint>
#include <optional>
#include <set>

#include "chief/coordination/sync_rounds.h"
#include "core/base/mutex.h"
#include "tests/support/counting_cluster.h"

namespace keelson {

// Thread-safe. Opens a round after the other.
class CountedRounds {
 public:
  CountedRounds();

  // ---- Clients, by incarnation.

  // Does nothing for one that is dead.
  void Join(uint64_t client);
  void NoteDead(uint64_t client);
  // CountingCluster::NextStep; waits until there is one.
  std::optional<CountedStep> NextStep(uint64_t client);
  bool Holds(uint64_t client, const CountedStep& step) const;
  void NoteEnd(uint64_t client, const CountedStep& step, const PushResult& result);

  // ---- Who has rounds committed.

  // Waits for one that has all of its contributions; nothing: End was called.
  std::optional<SyncRounds::Round> WaitForStaged() const;
  void NoteCommitted(const SyncRounds::Round& round);
  // It is begun again as another attempt.
  void NoteFailed(const SyncRounds::Round& round);

  // The round under way is the last one.
  void Finish();
  bool finished() const;
  // All calls that wait return.
  void End();

  // Rounds, and what every element is after them, with a learning rate of 1.
  int64_t committed() const;
  float values() const;
  // Attempts that were given up.
  int64_t given_up() const;

 private:
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Restart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  mutable CondVar changed_;
  SyncRounds rounds_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> clients_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> dead_ ABSL_GUARDED_BY(mu_);
  uint64_t leases_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t attempts_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t committed_ ABSL_GUARDED_BY(mu_) = 0;
  float values_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t given_up_ ABSL_GUARDED_BY(mu_) = 0;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_COUNTED_ROUNDS_H_
