// When the next snapshot is due, and when one that failed is tried again.
#ifndef KEELSON_CHIEF_LIFECYCLE_SAVE_SCHEDULE_H_
#define KEELSON_CHIEF_LIFECYCLE_SAVE_SCHEDULE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace keelson {

// Pauses between tries: `first`, then twice as long each time, up to `longest`.
class RetryPause {
 public:
  RetryPause(absl::Duration first, absl::Duration longest) : first_(first), longest_(longest) {}

  absl::Duration Next();
  void Reset() { next_.reset(); }

 private:
  absl::Duration first_;
  absl::Duration longest_;
  std::optional<absl::Duration> next_;
};

// A pure state machine; `now` is Clock::Monotonic(). Not thread-safe.
class SaveSchedule {
 public:
  struct Options {
    // The number of steps between snapshots; 0: one each `interval`.
    int64_t save_steps = 0;
    absl::Duration interval = absl::InfiniteDuration();
    RetryPause retry = RetryPause(absl::Seconds(1), absl::Minutes(1));
  };

  // The newest snapshot has `saved_step` and was written at `saved_at`.
  SaveSchedule(Options options, int64_t saved_step, absl::Duration saved_at);

  // The number of steps to wait for: when they are done, a snapshot is due. More than any job has
  // where time alone decides.
  int64_t AwaitedStep(absl::Duration now) const;

  bool Due(int64_t step, absl::Duration now) const;

  void NoteSaved(int64_t step, absl::Duration now);
  void NoteFailed(absl::Duration now);

 private:
  const Options options_;
  RetryPause retry_;
  int64_t saved_step_;
  absl::Duration saved_at_;
  absl::Duration not_before_ = -absl::InfiniteDuration();
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_SAVE_SCHEDULE_H_
