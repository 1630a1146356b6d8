#include "core/base/clock.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/scheduler.h"

namespace keelson {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() const override {
    if (const Scheduler* const scheduler = Scheduler::Current()) return scheduler->Now();
    return absl::Now();
  }
  absl::Duration Monotonic() const override {
    if (const Scheduler* const scheduler = Scheduler::Current()) return scheduler->Monotonic();
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

void Clock::WaitUntil(Mutex* mutex, CondVar* changed, absl::Duration until) const {
  // An infinite time would overflow the condition variable's type.
  changed->WaitFor(mutex, std::min(until - Monotonic(), absl::Hours(24 * 365)));
}

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

void ManualClock::WaitUntil(Mutex* mutex, CondVar* changed, absl::Duration until) const {
  Waiter waiter = {mutex, changed};
  {
    MutexLock lock(&mu_);
    if (elapsed_ >= until) return;
    waiters_.insert(&waiter);
  }
  changed->Wait(mutex);
  mutex->Unlock();
  {
    MutexLock lock(&mu_);
    while (waiter.advances > 0) woken_.Wait(&mu_);
    waiters_.erase(&waiter);
  }
  mutex->Lock();
}

void ManualClock::Advance(absl::Duration by) {
  std::vector<Waiter*> waiters;
  {
    MutexLock lock(&mu_);
    elapsed_ += by;
    waiters.assign(waiters_.begin(), waiters_.end());
    for (Waiter* waiter : waiters) ++waiter->advances;
  }
  for (Waiter* const waiter : waiters) {
    {
      // With the lock, so that none is between its look at the clock and its wait.
      MutexLock lock(waiter->mutex);
      waiter->changed->NotifyAll();
    }
    MutexLock lock(&mu_);
    --waiter->advances;
    woken_.NotifyAll();
  }
}

}  // namespace keelson
