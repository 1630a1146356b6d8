#include "chief/lifecycle/save_schedule.h"

#include <algorithm>
#include <limits>

namespace keelson {

absl::Duration RetryPause::Next() {
  next_ = next_.has_value() ? std::min(longest_, 2 * *next_) : first_;
  return *next_;
}

SaveSchedule::SaveSchedule(Options options, int64_t saved_step, absl::Duration saved_at)
    : options_(options), retry_(options.retry), saved_step_(saved_step), saved_at_(saved_at) {}

int64_t SaveSchedule::AwaitedStep(absl::Duration now) const {
  if (options_.save_steps == 0 || now < not_before_) return std::numeric_limits<int64_t>::max();
  return saved_step_ + options_.save_steps;
}

bool SaveSchedule::Due(int64_t step, absl::Duration now) const {
  if (step == saved_step_ || now < not_before_) return false;
  if (options_.save_steps > 0) return step >= AwaitedStep(now);
  return now >= saved_at_ + options_.interval;
}

void SaveSchedule::NoteSaved(int64_t step, absl::Duration now) {
  saved_step_ = step;
  saved_at_ = now;
  not_before_ = now;
  retry_.Reset();
}

void SaveSchedule::NoteFailed(absl::Duration now) { not_before_ = now + retry_.Next(); }

}  // namespace keelson
