#include "core/base/thread.h"

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/base/stop_signal.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(Thread, RunsUntilItIsJoined) {
  int result = 0;
  Thread none;
  EXPECT_FALSE(none.Joinable());
  Thread thread([&] { result = 7; });
  EXPECT_TRUE(thread.Joinable());
  none = std::move(thread);
  EXPECT_FALSE(thread.Joinable());
  Thread moved(std::move(none));
  moved.Join();
  EXPECT_FALSE(moved.Joinable());
  EXPECT_EQ(result, 7);
}

// Runs each thread when it is joined, counts what it is asked for, and lets time pass in waits.
class CountingScheduler : public Scheduler {
 public:
  CountingScheduler() { SetCurrent(this); }
  ~CountingScheduler() override { SetCurrent(nullptr); }

  void Lock(const void*) override { ++locks; }
  void LockShared(const void*) override { ++shared_locks; }
  void Unlock(const void*) override { ++unlocks; }
  void Wait(const void*, const void*, absl::Duration timeout) override { time += timeout; }
  void NotifyAll(const void*) override { ++notifications; }
  uint64_t Start(std::function<void()> body) override {
    bodies[++number] = std::move(body);
    return number;
  }
  void Join(uint64_t thread) override { bodies.at(thread)(); }
  absl::Time Now() const override { return absl::UnixEpoch() + time; }
  absl::Duration Monotonic() const override { return time; }
  uint64_t Random() override { return 42; }

  int locks = 0;
  int shared_locks = 0;
  int unlocks = 0;
  int notifications = 0;
  uint64_t number = 0;
  absl::Duration time;
  std::map<uint64_t, std::function<void()>> bodies;
};

TEST(Scheduler, RunsWhatItsThreadStarts) {
  CountingScheduler scheduler;
  bool ran = false;
  Thread thread([&] { ran = true; });
  EXPECT_TRUE(thread.Joinable());
  EXPECT_FALSE(ran);
  Thread moved(std::move(thread));
  EXPECT_FALSE(thread.Joinable());
  thread = std::move(moved);
  thread.Join();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(thread.Joinable());
}

TEST(Scheduler, LocksAndNotifies) {
  CountingScheduler scheduler;
  Mutex mutex;
  SharedMutex shared;
  CondVar changed;
  {
    MutexLock lock(&mutex);
    ReaderMutexLock reader(&shared);
    changed.NotifyAll();
  }
  { WriterMutexLock writer(&shared); }
  EXPECT_EQ(scheduler.locks, 2);
  EXPECT_EQ(scheduler.shared_locks, 1);
  EXPECT_EQ(scheduler.unlocks, 3);
  EXPECT_EQ(scheduler.notifications, 1);
}

TEST(Scheduler, IsTheClockOfPauses) {
  CountingScheduler scheduler;
  const StopSignal stop;
  EXPECT_FALSE(stop.WaitFor(absl::Hours(3)));
  EXPECT_EQ(Clock::Real()->Monotonic(), absl::Hours(3));
  EXPECT_EQ(Clock::Real()->Now(), absl::UnixEpoch() + absl::Hours(3));
  EXPECT_EQ(RandomId(), 42);
}

TEST(Scheduler, LeavesOtherThreadsToTheOperatingSystem) {
  std::thread other;
  Scheduler* seen = nullptr;
  {
    CountingScheduler scheduler;
    EXPECT_EQ(Scheduler::Current(), &scheduler);
    other = std::thread([&] { seen = Scheduler::Current(); });
    other.join();
  }
  EXPECT_EQ(seen, nullptr);
  EXPECT_EQ(Scheduler::Current(), nullptr);
}

}  // namespace
}  // namespace keelson
