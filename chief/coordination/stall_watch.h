// Finds workers that send heartbeats, but complete no step of the work that they hold: their device
// or their input hangs, and nobody else gets that work.
#ifndef KEELSON_CHIEF_COORDINATION_STALL_WATCH_H_
#define KEELSON_CHIEF_COORDINATION_STALL_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace keelson {

// Not thread-safe. Knows workers by their incarnation, from Join to Forget; it ignores all others.
class StallWatch {
 public:
  // A membership's first step may take this long: compilers and data preparation take minutes.
  static constexpr absl::Duration kFirstStep = absl::Minutes(10);
  // Each later one this many times the median of its own steps, and never less than kShortest.
  static constexpr int kMedians = 20;
  static constexpr absl::Duration kShortest = absl::Seconds(30);

  struct Stalled {
    uint64_t incarnation = 0;
    absl::Duration since;  // the time since its last step, or since it got work
    absl::Duration bound;
  };

  // `clock` outlives this.
  explicit StallWatch(const Clock* clock) : clock_(clock) {}

  // The worker belongs to the job, and may take `bound` for each of its steps, if that is more than
  // what it is allowed anyway.
  void Join(uint64_t incarnation, absl::Duration bound = absl::ZeroDuration()) {
    workers_[incarnation].own_bound = bound;
  }
  // It has completed `steps` more.
  void NoteSteps(uint64_t incarnation, int64_t steps);
  void Forget(uint64_t incarnation) { workers_.erase(incarnation); }
  // Nobody could complete a step until now.
  void Excuse();

  // Call it regularly, with those that hold work which they have not completed. Returns those of
  // them that have stood still for longer than their bound.
  std::vector<Stalled> Look(const std::set<uint64_t>& owing);

 private:
  struct Worker {
    absl::Duration own_bound;
    int64_t steps = 0;
    std::deque<absl::Duration> newest;  // times of its newest steps
    // Since when it has owed a step; absent: it owes none.
    std::optional<absl::Duration> owing_since;
  };

  static absl::Duration BoundOf(const Worker& worker);

  const Clock* const clock_;
  std::map<uint64_t, Worker> workers_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_STALL_WATCH_H_
