#include "evaluator/schedule.h"

#include <algorithm>

namespace keelson {

EvaluationSchedule::EvaluationSchedule(const v1::EvaluationConfig& config, const Clock* clock)
    : throttle_(absl::Seconds(config.throttle_seconds())),
      clock_(clock),
      delayed_until_(clock->Monotonic() + absl::Seconds(config.start_delay_seconds())) {}

void EvaluationSchedule::Begun(absl::Time start) {
  const absl::Duration age = std::max(clock_->Now() - start, absl::ZeroDuration());
  const absl::Duration begun = clock_->Monotonic() - age;
  last_begun_ = last_begun_.has_value() ? std::max(*last_begun_, begun) : begun;
}

std::optional<int64_t> EvaluationSchedule::Next(absl::Span<const Candidate> snapshots,
                                                std::optional<int64_t> final_step) {
  const bool waiting = Waiting();
  const bool selective = waiting || throttle_ > absl::ZeroDuration();
  if (selective) {
    for (const Candidate& snapshot : snapshots) {
      if (!snapshot.taken && snapshot.step == final_step) return final_step;
    }
    PassOver(snapshots);
  }
  if (waiting) return std::nullopt;
  for (const Candidate& snapshot : snapshots) {
    if (!snapshot.taken && passed_over_.count(snapshot.step) == 0) return snapshot.step;
  }
  return std::nullopt;
}

bool EvaluationSchedule::Waiting() const {
  const absl::Duration now = clock_->Monotonic();
  return now < delayed_until_ || (last_begun_.has_value() && now - *last_begun_ < throttle_);
}

void EvaluationSchedule::PassOver(absl::Span<const Candidate> snapshots) {
  bool newer = false;
  for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
    if (newer && !snapshot->taken) passed_over_.insert(snapshot->step);
    newer = true;
  }
}

}  // namespace keelson
