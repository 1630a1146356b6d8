#include "core/optim/clip.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/wire/simd_targets_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

float Clip(std::vector<float>* a, std::vector<float>* b, float max_norm) {
  const absl::Span<float> spans[] = {absl::MakeSpan(*a), absl::MakeSpan(*b)};
  return ClipByGlobalNorm(spans, max_norm);
}

TEST(ClipByGlobalNormTest, ScalesAllByTheJointNorm) {
  std::vector<float> a = {2, -4}, b = {4, 0, 8};
  EXPECT_FLOAT_EQ(Clip(&a, &b, 5), 10);
  EXPECT_THAT(a, ElementsAre(FloatEq(1), FloatEq(-2)));
  EXPECT_THAT(b, ElementsAre(FloatEq(2), FloatEq(0), FloatEq(4)));
}

TEST(ClipByGlobalNormTest, LeavesAShortGradientAlone) {
  std::vector<float> a = {3}, b = {4};
  EXPECT_EQ(Clip(&a, &b, 5), 5);
  EXPECT_THAT(a, ElementsAre(3));
  EXPECT_THAT(b, ElementsAre(4));
}

TEST(ClipByGlobalNormTest, SumsInDoublePrecision) {
  // 1e8 + 1 is 1e8 in float32, and the square of 1e30 overflows.
  std::vector<float> uneven(10'001, 1.0f), none;
  uneven[0] = 1e4f;
  EXPECT_FLOAT_EQ(Clip(&uneven, &none, 1e9f), 10000.499988f);
  std::vector<float> large = {1e30f, 0};
  EXPECT_FLOAT_EQ(Clip(&large, &none, 1), 1e30f);
  EXPECT_FLOAT_EQ(large[0], 1);
}

TEST(ClipByGlobalNormTest, ReturnsAndLeavesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> a = {bad}, b = {100};
    EXPECT_FALSE(std::isfinite(Clip(&a, &b, 1)));
    EXPECT_EQ(b[0], 100);
  }
}

TEST(ClipByGlobalNormTest, AllInstructionSetsGiveTheSameBits) {
  std::vector<float> gradient(1003), none;
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = 1 / (1 + static_cast<float>(i));
  std::vector<float> expected = gradient;
  const float norm = Clip(&expected, &none, 0.5f);
  ForEachInstructionSet([&] {
    std::vector<float> clipped = gradient;
    EXPECT_EQ(Clip(&clipped, &none, 0.5f), norm);
    EXPECT_EQ(clipped, expected);
  });
}

TEST(ClipByGlobalNormTest, NoGradientHasNormZero) { EXPECT_EQ(ClipByGlobalNorm({}, 1), 0); }

}  // namespace
}  // namespace keelson
