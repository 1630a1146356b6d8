#include "core/http/rate_limiter.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

TEST(RateLimiter, GivesABurstAndThenARate) {
  ManualClock clock;
  RateLimiter limiter(2, 3, &clock);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("a"), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("a"), absl::Milliseconds(500));
  clock.Advance(absl::Milliseconds(250));
  EXPECT_EQ(limiter.Take("a"), absl::Milliseconds(250));
  clock.Advance(absl::Milliseconds(250));
  EXPECT_EQ(limiter.Take("a"), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("a"), absl::Milliseconds(500));
  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("a"), absl::ZeroDuration());
  EXPECT_GT(limiter.Take("a"), absl::ZeroDuration());
}

TEST(RateLimiter, TellsClientsApart) {
  ManualClock clock;
  RateLimiter limiter(1, 1, &clock);
  EXPECT_EQ(limiter.Take("a"), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("b"), absl::ZeroDuration());
  EXPECT_GT(limiter.Take("a"), absl::ZeroDuration());
}

TEST(RateLimiter, ForgetsThoseWhoWereSilentLongest) {
  ManualClock clock;
  RateLimiter limiter(0.001, 1, &clock);
  limiter.Take("first");
  clock.Advance(absl::Seconds(1));
  limiter.Take("second");
  for (size_t i = 1; i < RateLimiter::kMaxClients; ++i) {
    clock.Advance(absl::Milliseconds(1));
    limiter.Take(absl::StrCat(i));
  }
  EXPECT_GT(limiter.Take("second"), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("first"), absl::ZeroDuration());
}

}  // namespace
}  // namespace keelson
