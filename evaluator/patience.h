// How long something is waited for.
#ifndef KEELSON_EVALUATOR_PATIENCE_H_
#define KEELSON_EVALUATOR_PATIENCE_H_

#include <optional>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace keelson {

// Begins when it is asked first, and again after Reset. Not thread-safe.
class Patience {
 public:
  // The clock outlives this.
  Patience(absl::Duration length, const Clock* clock) : length_(length), clock_(clock) {}

  // Whether `length` has passed since the beginning, which is now if there is none.
  bool IsOver() {
    const absl::Duration now = clock_->Monotonic();
    if (!since_.has_value()) since_ = now;
    return now - *since_ >= length_;
  }
  bool begun() const { return since_.has_value(); }
  void Reset() { since_.reset(); }

 private:
  const absl::Duration length_;
  const Clock* const clock_;
  std::optional<absl::Duration> since_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_PATIENCE_H_
