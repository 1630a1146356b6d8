#include "core/tensor/variable.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

std::vector<float> Values(const VariableSpec& spec, uint64_t seed, int64_t first, int64_t count) {
  std::vector<float> values(count);
  FillInitialValues(spec, seed, first, absl::MakeSpan(values));
  return values;
}

const VariableSpec kUniform = {"w", Shape({100, 100}), {Initializer::Kind::kUniform, -2, 3}};
const VariableSpec kNormal = {"w", Shape({100, 100}), {Initializer::Kind::kNormal, 1, 2}};
const VariableSpec kTruncated = {
    "w", Shape({100, 100}), {Initializer::Kind::kTruncatedNormal, 1, 2}};

double NormalCdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// Kolmogorov and Smirnov's distance between values and a continuous distribution, times the root of
// their number. Samples of that distribution exceed 1.95 once in 1000 times.
template <typename Cdf>
double Distance(std::vector<float> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = static_cast<double>(i) / count;
    const double p = cdf(values[i]);
    distance = std::max({distance, p - below, below + 1 / count - p});
  }
  return distance * std::sqrt(count);
}

TEST(FillInitialValuesTest, DoesNotDependOnTheCut) {
  for (const VariableSpec& spec : {kUniform, kNormal, kTruncated}) {
    const std::vector<float> whole = Values(spec, 7, 0, 1000);
    for (const int64_t cut : {1, 333, 999}) {
      std::vector<float> parts = Values(spec, 7, 0, cut);
      const std::vector<float> rest = Values(spec, 7, cut, 1000 - cut);
      parts.insert(parts.end(), rest.begin(), rest.end());
      EXPECT_EQ(parts, whole);
    }
  }
}

TEST(FillInitialValuesTest, DependsOnSeedAndName) {
  VariableSpec other = kUniform;
  other.name = "v";
  EXPECT_NE(Values(kUniform, 1, 0, 10), Values(kUniform, 2, 0, 10));
  EXPECT_NE(Values(kUniform, 1, 0, 10), Values(other, 1, 0, 10));
}

TEST(FillInitialValuesTest, UniformStaysInItsRange) {
  double sum = 0;
  for (const float v : Values(kUniform, 1, 0, 10000)) {
    ASSERT_GE(v, -2.0f);
    ASSERT_LT(v, 3.0f);
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.05);
}

TEST(FillInitialValuesTest, NormalHasItsMoments) {
  double sum = 0, squares = 0;
  for (const float v : Values(kNormal, 1, 0, 10000)) {
    ASSERT_TRUE(std::isfinite(v));
    sum += v;
    squares += (v - 1.0) * (v - 1.0);
  }
  EXPECT_NEAR(sum / 10000, 1.0, 0.08);
  EXPECT_NEAR(std::sqrt(squares / 10000), 2.0, 0.06);
}

TEST(FillInitialValuesTest, TruncatedNormalStaysWithinTwoDeviations) {
  double sum = 0, squares = 0;
  for (const float v : Values(kTruncated, 1, 0, 10000)) {
    ASSERT_GE(v, -3.0f);
    ASSERT_LE(v, 5.0f);
    sum += v;
    squares += (v - 1.0) * (v - 1.0);
  }
  EXPECT_NEAR(sum / 10000, 1.0, 0.06);
  // sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)) of the untruncated one's.
  EXPECT_NEAR(std::sqrt(squares / 10000), 2 * 0.87962566, 0.04);
}

TEST(FillInitialValuesTest, ValuesHaveTheirDistribution) {
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_LT(Distance(Values(kUniform, seed, 0, 10000), [](double x) { return (x + 2) / 5; }),
              1.95);
    EXPECT_LT(
        Distance(Values(kNormal, seed, 0, 10000), [](double x) { return NormalCdf((x - 1) / 2); }),
        1.95);
    const double outside = NormalCdf(-2);
    EXPECT_LT(
        Distance(Values(kTruncated, seed, 0, 10000),
                 [&](double x) { return (NormalCdf((x - 1) / 2) - outside) / (1 - 2 * outside); }),
        1.95);
  }
}

// Computed by another implementation of Philox, of Box and Muller's method and of the redrawing
// (in Python, whose libm may round otherwise). Snapshots and reports of jobs refer to these values:
// they never change.
TEST(FillInitialValuesTest, ValuesAreThoseOfEveryBuild) {
  const auto value = [](Initializer::Kind kind, float a, float b, int64_t element) {
    return Values({"dense/kernel", Shape({100, 100}), {kind, a, b}}, 7, element, 1)[0];
  };
  using Kind = Initializer::Kind;
  EXPECT_FLOAT_EQ(value(Kind::kUniform, -2, 3, 0), 0.04719901084899902f);
  EXPECT_FLOAT_EQ(value(Kind::kUniform, -2, 3, 3), 2.3266286849975586f);
  EXPECT_FLOAT_EQ(value(Kind::kNormal, 1, 2, 0), 2.801690101623535f);
  EXPECT_FLOAT_EQ(value(Kind::kNormal, 1, 2, 2), -0.1564793884754181f);
  EXPECT_FLOAT_EQ(value(Kind::kTruncatedNormal, 1, 2, 0), 2.801690101623535f);
  // From the second pair of bits, and from the first and the second pair of the second draw.
  EXPECT_FLOAT_EQ(value(Kind::kTruncatedNormal, 1, 2, 49), 2.132167339324951f);
  EXPECT_FLOAT_EQ(value(Kind::kTruncatedNormal, 1, 2, 596), 1.979767084121704f);
  EXPECT_FLOAT_EQ(value(Kind::kTruncatedNormal, 1, 2, 874), 2.484145164489746f);
}

TEST(FillInitialValuesTest, Constant) {
  const VariableSpec spec = {"b", Shape({3}), {Initializer::Kind::kConstant, 0.25f, 0}};
  EXPECT_EQ(Values(spec, 1, 0, 3), (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

}  // namespace
}  // namespace keelson
