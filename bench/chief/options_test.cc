#include "bench/chief/options.h"

#include <vector>

#include "core/base/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

std::variant<ChiefBenchOptions, int> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "chief_bench");
  return ParseChiefBenchOptions(static_cast<int>(flags.size()), flags.data());
}

TEST(ChiefBenchOptionsTest, MeasuresTheChiefBesideItInBothModes) {
  const auto options = std::get<ChiefBenchOptions>(Parse({}));
  EXPECT_THAT(options.workers, ElementsAre(100, 1000, 3000));
  EXPECT_THAT(options.measure.program, EndsWith("/chief"));
  EXPECT_TRUE(options.measure.asynchronous);
  EXPECT_TRUE(options.measure.synchronous);
  EXPECT_EQ(options.measure.repeat, 3);
  EXPECT_FALSE(options.life.has_value());
}

TEST(ChiefBenchOptionsTest, QuickYieldsToWhatIsGiven) {
  const auto options = std::get<ChiefBenchOptions>(Parse(
      {"--quick", "--seconds=5", "--workers=3,7", "--modes=sync", "--heartbeat_seconds=0.5"}));
  EXPECT_THAT(options.workers, ElementsAre(3, 7));
  EXPECT_EQ(options.measure.seconds, 5);
  EXPECT_EQ(options.measure.repeat, 2);
  EXPECT_EQ(options.measure.heartbeats_per_second, 2);
  EXPECT_FALSE(options.measure.asynchronous);
  EXPECT_TRUE(options.measure.synchronous);
}

TEST(ChiefBenchOptionsTest, ALifeIsMeasuredOnlyWhenItIsAskedFor) {
  const auto options = std::get<ChiefBenchOptions>(Parse({"--life=3", "--lives=20"}));
  ASSERT_TRUE(options.life.has_value());
  EXPECT_EQ(options.life->life_seconds, 3);
  EXPECT_EQ(options.life->lives, 20);
}

TEST(ChiefBenchOptionsTest, RefusesWhatItCannotMeasure) {
  for (const char* flag : {"--workers=0", "--workers=5000", "--life=0.1", "--modes=fast",
                           "--chief=/nonexistent", "--nonsense"}) {
    EXPECT_EQ(std::get<int>(Parse({flag})), kExitPermanent) << flag;
  }
}

}  // namespace
}  // namespace keelson::bench
