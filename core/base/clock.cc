#include "core/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace keelson {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Monotonic() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

Clock* Clock::Real() {
  static RealClock* const clock = new RealClock();
  return clock;
}

absl::Time ManualClock::Now() const {
  MutexLock lock(&mu_);
  return start_ + elapsed_;
}

absl::Duration ManualClock::Monotonic() const {
  MutexLock lock(&mu_);
  return elapsed_;
}

void ManualClock::Advance(absl::Duration by) {
  MutexLock lock(&mu_);
  elapsed_ += by;
}

}  // namespace keelson
