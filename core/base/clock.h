// Time as a dependency: state machines and loops take a Clock, tests move a ManualClock.
#ifndef KEELSON_CORE_BASE_CLOCK_H_
#define KEELSON_CORE_BASE_CLOCK_H_

#include <set>
#include <utility>

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

// Stands still until it is advanced. Both kinds of time move together. What waits for it outlives a
// call of Advance.
class ManualClock : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}

  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
  void WaitUntil(Mutex* mutex, CondVar* changed, absl::Duration until) const override;
  // The caller holds no lock with which another thread waits for this clock.
  void Advance(absl::Duration by);

 private:
  const absl::Time start_;
  mutable Mutex mu_;
  absl::Duration elapsed_ ABSL_GUARDED_BY(mu_);
  mutable std::multiset<std::pair<Mutex*, CondVar*>> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_CLOCK_H_
