#include "core/base/clock.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ManualClockTest, StandsStillUntilAdvanced) {
  ManualClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now() - start, absl::Seconds(3));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(3));
}

TEST(ManualClockTest, AdvanceWakesThoseWhoWaitForIt) {
  ManualClock clock;
  Mutex mu;
  CondVar changed;
  std::thread advances([&] {
    for (int i = 0; i < 3; ++i) clock.Advance(absl::Seconds(1));
  });
  {
    MutexLock lock(&mu);
    while (clock.Monotonic() < absl::Seconds(3)) clock.WaitUntil(&mu, &changed, absl::Seconds(3));
  }
  advances.join();
  MutexLock lock(&mu);
  clock.WaitUntil(&mu, &changed, absl::Seconds(3));
}

// What a thread waits with may be on its stack: a call's watch for a silent peer is.
TEST(ManualClockTest, WhatWasWaitedWithMayGoAtOnce) {
  ManualClock clock;
  struct Condition {
    Mutex mu;
    CondVar changed;
  };
  std::atomic<bool> done{false};
  std::thread advances([&] {
    while (!done) clock.Advance(absl::Seconds(1));
  });
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&clock] {
      for (int round = 0; round < 2000; ++round) {
        const auto condition = std::make_unique<Condition>();
        MutexLock lock(&condition->mu);
        clock.WaitUntil(&condition->mu, &condition->changed, clock.Monotonic() + absl::Seconds(1));
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  done = true;
  advances.join();
}

TEST(RealClockTest, WaitsNoLongerThanAsked) {
  Mutex mu;
  CondVar changed;
  const absl::Duration until = Clock::Real()->Monotonic() + absl::Milliseconds(2);
  MutexLock lock(&mu);
  while (Clock::Real()->Monotonic() < until) Clock::Real()->WaitUntil(&mu, &changed, until);
  Clock::Real()->WaitUntil(&mu, &changed, -absl::InfiniteDuration());
}

TEST(RealClockTest, MonotonicNeverGoesBack) {
  const absl::Duration a = Clock::Real()->Monotonic();
  const absl::Duration b = Clock::Real()->Monotonic();
  EXPECT_LE(a, b);
}

}  // namespace
}  // namespace keelson
