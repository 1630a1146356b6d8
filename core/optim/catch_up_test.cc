#include "core/optim/catch_up.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr uint32_t kExponents[] = {0, 1, 2, 15, 16, 17, 255, 256, 4099, 65535, 1000000, 4294967295};

TEST(PowerTableTest, AgreesWithPow) {
  for (const double base : {0.0, 0.5, 0.9, 0.999, 0.9999999, 1.0, -0.5}) {
    const PowerTable power(base);
    for (const uint32_t k : kExponents) {
      const double expected = std::pow(base, k);
      // The error of the base itself grows with the exponent.
      EXPECT_NEAR(power(k), expected, 1e-15 * (k + 1.0) * std::abs(expected) + 1e-300)
          << base << "^" << k;
    }
  }
}

// beta1, beta2
using Betas = std::pair<float, float>;

class AdamSeriesTest : public testing::TestWithParam<Betas> {
 protected:
  double CorrectionAt(int64_t t) const {
    const auto at = static_cast<double>(t);
    return std::sqrt(1 - std::pow(double{rule_.beta2}, at)) /
           (1 - std::pow(double{rule_.beta1}, at));
  }
  double Sum(int64_t t, uint32_t k) const {
    const double q = rule_.beta1 / std::sqrt(double{rule_.beta2});
    double sum = 0, power = q;
    for (uint32_t j = 1; j <= k && power > 1e-20; ++j, power *= q)
      sum += power * CorrectionAt(t + j);
    return sum;
  }

  const AdamRule rule_ = {GetParam().first, GetParam().second, 1e-8f};
};

TEST_P(AdamSeriesTest, BiasCorrectionIsAdams) {
  const BiasCorrection correction(rule_);
  for (const int64_t t : {int64_t{1}, int64_t{2}, int64_t{100}, int64_t{65536}, int64_t{1} << 40}) {
    EXPECT_NEAR(correction.At(t), CorrectionAt(t), 1e-9 * CorrectionAt(t)) << t;
  }
}

TEST_P(AdamSeriesTest, MovementIsTheSumOfItsTerms) {
  const AdamSeries series(rule_);
  for (const int64_t t : {0, 1, 2, 7, 100, 5000, 16380, 16384, 20000, 1000000}) {
    for (const uint32_t k : kExponents) {
      const double expected = Sum(t, k);
      EXPECT_NEAR(series.Movement(t, k, series.All(t + k)), expected, 1e-5 * expected + 1e-14)
          << t << " and " << k;
    }
  }
}

TEST_P(AdamSeriesTest, MeanStepIsThatOfTheTerms) {
  const AdamSeries series(rule_);
  const double q = rule_.beta1 / std::sqrt(double{rule_.beta2});
  for (const uint32_t k : {1, 2, 7, 50, 10000}) {
    double sum = 0, weighted = 0, power = 1;
    for (uint32_t j = 1; j <= k; ++j, power *= q) {
      sum += power;
      weighted += power * j;
    }
    EXPECT_NEAR(series.MeanStep(k), weighted / sum, 1e-9 * weighted / sum) << k;
  }
}

TEST_P(AdamSeriesTest, FactorsArePowersThatNeverAreDenormal) {
  constexpr float kLeastNormal = std::numeric_limits<float>::min();
  const AdamSeries series(rule_);
  for (const uint32_t k : kExponents) {
    const double m = std::pow(double{rule_.beta1}, k), v = std::pow(double{rule_.beta2}, k);
    EXPECT_NEAR(series.FactorOfM(k), m, 1e-6 * m + 1e-20) << k;
    EXPECT_NEAR(series.FactorOfV(k), v, 1e-6 * v + 1.2e-38) << k;
    EXPECT_TRUE(series.FactorOfM(k) == 0 || series.FactorOfM(k) >= kLeastNormal) << k;
    EXPECT_TRUE(series.FactorOfV(k) == 0 || series.FactorOfV(k) >= kLeastNormal) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Betas, AdamSeriesTest,
                         testing::Values(Betas{0.9f, 0.999f}, Betas{0.0f, 0.999f},
                                         Betas{0.5f, 0.9f}, Betas{0.9f, 0.99999f},
                                         Betas{0.99f, 0.999f}));

}  // namespace
}  // namespace keelson
