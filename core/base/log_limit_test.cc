#include "core/base/log_limit.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::Eq;
using testing::Optional;

TEST(LogLimitTest, AFloodBecomesALineEachSecond) {
  ManualClock clock;
  LogLimit limit(&clock);
  for (int64_t i = 0; i < LogLimit::kOneByOne; ++i) EXPECT_THAT(limit.Admit(), Optional(0));
  EXPECT_THAT(limit.Admit(), Eq(std::nullopt));
  EXPECT_THAT(limit.Admit(), Eq(std::nullopt));
  clock.Advance(absl::Seconds(1));
  EXPECT_THAT(limit.Admit(), Optional(2));
  EXPECT_THAT(limit.Admit(), Eq(std::nullopt));
}

}  // namespace
}  // namespace keelson
