// Decides which snapshot is scored when: all, or some (EvaluationConfig.start_delay_seconds and
// throttle_seconds).
#ifndef KEELSON_EVALUATOR_SCHEDULE_H_
#define KEELSON_EVALUATOR_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// A snapshot as the schedule sees it.
struct Candidate {
  int64_t step = 0;
  // It was scored, or an evaluator is scoring it.
  bool taken = false;
};

// Not thread-safe.
class EvaluationSchedule {
 public:
  // The evaluator's process begins now. `clock` outlives the schedule.
  EvaluationSchedule(const v1::EvaluationConfig& config, const Clock* clock);

  // An evaluator has begun an evaluation at this time of the wall clock; one in the future counts
  // as now. The latest one counts.
  void Begun(absl::Time start);

  // The step to score now, if any. `snapshots` are those that can be read, in the order in which
  // they were written. Without delay and throttle: the oldest one that is not taken. Otherwise the
  // newest one, when it is due; those before it are skipped for good. The final snapshot waits only
  // for those before it, and only if every snapshot is scored.
  std::optional<int64_t> Next(absl::Span<const Candidate> snapshots,
                              std::optional<int64_t> final_step);

 private:
  bool Waiting() const;
  // Skips all untaken snapshots but the last, and those before a taken one.
  void PassOver(absl::Span<const Candidate> snapshots);

  const absl::Duration throttle_;
  const Clock* const clock_;
  // A time of the monotonic clock.
  const absl::Duration delayed_until_;
  std::optional<absl::Duration> last_begun_;
  std::set<int64_t> passed_over_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCHEDULE_H_
