#include "tests/search/fiber_scheduler.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using Outcome = FiberScheduler::Outcome;

constexpr absl::Duration kTime = absl::Hours(100);
constexpr int64_t kChoices = 100'000;

struct Result {
  std::string order;
  uint64_t trace = 0;

  friend bool operator==(const Result&, const Result&) = default;
};

// Two threads write a letter each, four times, with a lock.
Result TwoWriters(uint64_t seed) {
  FiberScheduler scheduler({seed, 0.5});
  Result result;
  Mutex mu;
  scheduler.StartIn(0, [&] {
    std::vector<Thread> threads;
    for (const char letter : {'a', 'b'}) {
      threads.emplace_back([&, letter] {
        for (int i = 0; i < 4; ++i) {
          MutexLock lock(&mu);
          result.order += letter;
        }
      });
    }
    for (Thread& thread : threads) thread.Join();
  });
  EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
  result.trace = scheduler.trace();
  return result;
}

TEST(FiberScheduler, RepeatsASeedExactly) {
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(TwoWriters(seed), TwoWriters(seed));
}

TEST(FiberScheduler, TriesMany) {
  std::set<std::string> orders;
  std::set<uint64_t> traces;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Result result = TwoWriters(seed);
    orders.insert(result.order);
    traces.insert(result.trace);
  }
  EXPECT_GT(orders.size(), 20);
  EXPECT_EQ(traces.size(), 100);
}

Outcome TwoLocks(uint64_t seed, std::string* threads) {
  FiberScheduler scheduler({seed, 0.5});
  auto* const a = new Mutex();
  auto* const b = new Mutex();
  scheduler.StartIn(1, [=] {
    MutexLock first(a);
    MutexLock second(b);
  });
  scheduler.StartIn(2, [=] {
    MutexLock first(b);
    MutexLock second(a);
  });
  const Outcome outcome = scheduler.Run(kTime, kChoices);
  *threads = scheduler.Threads();
  // A thread that waits for ever still has its locks.
  if (outcome == Outcome::kFinished) {
    delete a;
    delete b;
  }
  return outcome;
}

TEST(FiberScheduler, FindsADeadlock) {
  int deadlocks = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::string threads;
    if (TwoLocks(seed, &threads) == Outcome::kFinished) continue;
    ++deadlocks;
    EXPECT_NE(threads.find("of group 1 waits for a lock"), std::string::npos) << threads;
    EXPECT_NE(threads.find("of group 2 waits for a lock"), std::string::npos) << threads;
  }
  EXPECT_GT(deadlocks, 5);
  EXPECT_LT(deadlocks, 45);
}

TEST(FiberScheduler, LetsTimeJump) {
  FiberScheduler scheduler({1});
  absl::Duration slept;
  bool raised = false;
  StopSignal stop;
  scheduler.StartIn(0, [&] {
    const absl::Duration start = Clock::Real()->Monotonic();
    Thread other([&] { raised = stop.WaitFor(absl::Hours(50)); });
    const StopSignal never;
    EXPECT_FALSE(never.WaitFor(absl::Hours(3)));
    slept = Clock::Real()->Monotonic() - start;
    stop.Raise();
    other.Join();
  });
  EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
  EXPECT_TRUE(raised);
  EXPECT_GE(slept, absl::Hours(3));
  EXPECT_LT(slept, absl::Hours(3) + absl::Seconds(1));
}

TEST(FiberScheduler, EndsAtItsLimits) {
  {
    FiberScheduler scheduler({1});
    scheduler.StartIn(0, [] {
      const StopSignal never;
      while (!never.WaitFor(absl::Seconds(1))) {
      }
    });
    EXPECT_EQ(scheduler.Run(absl::Minutes(1), kChoices), Outcome::kTimeLimit);
  }
  FiberScheduler scheduler({1});
  scheduler.StartIn(0, [&] {
    while (true) scheduler.Pause();
  });
  EXPECT_EQ(scheduler.Run(absl::Minutes(1), 1000), Outcome::kChoiceLimit);
}

TEST(FiberScheduler, KillsAGroupWhereverItsThreadsAre) {
  FiberScheduler scheduler({1});
  auto* const mu = new Mutex();
  int steps = 0;
  bool waited = false;
  scheduler.StartIn(1, [&, mu] {
    Thread other([&] {
      const StopSignal never;
      never.WaitFor(absl::Seconds(20));
      waited = true;
    });
    MutexLock lock(mu);
    while (true) {
      ++steps;
      scheduler.WaitFor(&steps, absl::Seconds(1));
    }
  });
  scheduler.At(absl::Milliseconds(5500), [&] { scheduler.Kill(1); });
  int others = 0;
  scheduler.StartIn(2, [&] {
    const StopSignal never;
    for (; others < 30; ++others) never.WaitFor(absl::Seconds(1));
    scheduler.Kill(2);
    others = -1;
  });
  EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
  EXPECT_EQ(steps, 6);
  EXPECT_FALSE(waited);
  EXPECT_EQ(others, 30);
}

TEST(FiberScheduler, PausesAGroup) {
  FiberScheduler scheduler({1});
  absl::Duration slept;
  scheduler.StartIn(1, [&] {
    const StopSignal never;
    never.WaitFor(absl::Seconds(2));
    slept = Clock::Real()->Monotonic();
  });
  scheduler.At(absl::Seconds(1), [&] { scheduler.SetPaused(1, true); });
  scheduler.At(absl::Seconds(10), [&] { scheduler.SetPaused(1, false); });
  EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
  EXPECT_GE(slept, absl::Seconds(10));
  EXPECT_LT(slept, absl::Seconds(11));
}

TEST(FiberScheduler, HoldsReadersAndWritersApart) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    FiberScheduler scheduler({seed, 0.5});
    SharedMutex mu;
    int readers = 0;
    int most_readers = 0;
    bool writes = false;
    const auto read = [&] {
      ReaderMutexLock lock(&mu);
      EXPECT_FALSE(writes);
      most_readers = std::max(most_readers, ++readers);
      scheduler.Pause();
      --readers;
    };
    for (int i = 0; i < 3; ++i) {
      scheduler.StartIn(0, read);
      scheduler.StartIn(0, [&] {
        WriterMutexLock lock(&mu);
        EXPECT_FALSE(writes);
        EXPECT_EQ(readers, 0);
        writes = true;
        scheduler.Pause();
        writes = false;
      });
    }
    EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
    EXPECT_GE(most_readers, 1);
  }
}

TEST(FiberScheduler, RunsAThreadPool) {
  FiberScheduler scheduler({3, 0.5});
  std::vector<int> done(20);
  scheduler.StartIn(0, [&] {
    ThreadPool pool(3);
    pool.RunAll(done.size(), [&](size_t i) { ++done[i]; });
  });
  EXPECT_EQ(scheduler.Run(kTime, kChoices), Outcome::kFinished);
  EXPECT_EQ(done, std::vector<int>(20, 1));
}

}  // namespace
}  // namespace keelson
