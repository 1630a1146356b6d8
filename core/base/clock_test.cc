#include "core/base/clock.h"

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

TEST(RealClockTest, MonotonicNeverGoesBack) {
  const absl::Duration a = Clock::Real()->Monotonic();
  const absl::Duration b = Clock::Real()->Monotonic();
  EXPECT_LE(a, b);
}

}  // namespace
}  // namespace keelson
