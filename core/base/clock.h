// Time as a dependency: state machines and loops take a Clock, tests move a ManualClock.
#ifndef KEELSON_CORE_BASE_CLOCK_H_
#define KEELSON_CORE_BASE_CLOCK_H_

#include <set>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace keelson {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time, for records and file names.
  virtual absl::Time Now() const = 0;

  // Time since an arbitrary start that never goes back; for leases, timeouts and rates.
  virtual absl::Duration Monotonic() const = 0;

  // Waits for `changed`, whose `mutex` the caller holds, until Monotonic() is `until` at the
  // latest. May wake early.
  virtual void WaitUntil(Mutex* mutex, CondVar* changed, absl::Duration until) const;

  // The process's real clock, or the Scheduler's for threads that one runs; lives for ever.
  static Clock* Real();
};

// Stands still until it is advanced. Both kinds of time move together.
class ManualClock : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}

  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
  // Gives the mutex up a second time where Advance is about to lock it, so that it may be destroyed
  // as soon as this has returned. The analysis does not know that the caller holds it.
  void WaitUntil(Mutex* mutex, CondVar* changed,
                 absl::Duration until) const override ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // The caller holds no lock with which another thread waits for this clock.
  void Advance(absl::Duration by);

 private:
  // A thread in WaitUntil, on whose stack it is.
  struct Waiter {
    Mutex* mutex;
    CondVar* changed;
    int advances = 0;  // that are going to wake it
  };

  const absl::Time start_;
  mutable Mutex mu_;
  mutable CondVar woken_;  // an Advance has woken one
  absl::Duration elapsed_ ABSL_GUARDED_BY(mu_);
  mutable std::set<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_CLOCK_H_
