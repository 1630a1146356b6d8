#include "core/tensor/variable.h"

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

TEST(FillInitialValuesTest, DoesNotDependOnTheCut) {
  const std::vector<float> whole = Values(kNormal, 7, 0, 1000);
  for (const int64_t cut : {1, 333, 999}) {
    std::vector<float> parts = Values(kNormal, 7, 0, cut);
    const std::vector<float> rest = Values(kNormal, 7, cut, 1000 - cut);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole);
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

TEST(FillInitialValuesTest, Constant) {
  const VariableSpec spec = {"b", Shape({3}), {Initializer::Kind::kConstant, 0.25f, 0}};
  EXPECT_EQ(Values(spec, 1, 0, 3), (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

}  // namespace
}  // namespace keelson
