// Decides which thread runs, where a test wants every interleaving to be one that it can repeat:
// docs/adr/0029-deterministic-scheduler.md.
#ifndef KEELSON_CORE_BASE_SCHEDULER_H_
#define KEELSON_CORE_BASE_SCHEDULER_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace keelson {

// Threads, locks, waiting, time and random identities of the threads that it runs. Mutex, CondVar,
// SharedMutex, Thread, Clock::Real and RandomId consult it; programs have none, so that each of
// these costs them a load and a branch.
class Scheduler {
 public:
  // The one that runs the calling thread; null: the operating system does.
  static Scheduler* Current() { return current_; }

  virtual ~Scheduler() = default;

  // Waits until nobody holds the lock, or until nobody holds it exclusively.
  virtual void Lock(const void* lock) = 0;
  virtual void LockShared(const void* lock) = 0;
  virtual void Unlock(const void* lock) = 0;

  // Releases the lock, which is held exclusively, until the condition is notified or `timeout` has
  // passed, and takes it again.
  virtual void Wait(const void* condition, const void* lock, absl::Duration timeout) = 0;
  virtual void NotifyAll(const void* condition) = 0;

  // Returns the new thread's number, for one call of Join.
  virtual uint64_t Start(std::function<void()> body) = 0;
  virtual void Join(uint64_t thread) = 0;

  virtual absl::Time Now() const = 0;
  virtual absl::Duration Monotonic() const = 0;
  virtual uint64_t Random() = 0;

 protected:
  // For the calling thread of the operating system.
  static void SetCurrent(Scheduler* scheduler) { current_ = scheduler; }

 private:
  static inline constinit thread_local Scheduler* current_ = nullptr;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_SCHEDULER_H_
