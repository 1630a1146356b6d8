#include "core/device/cpu/gate_vectors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/wire/simd_targets_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using Floats = std::vector<float>;

// Both sides of every branch, and as many as leave a rest of any width.
Floats Numbers() {
  Floats numbers = {0.0f, -0.0f, 1e-30f, -1e-30f, 13.1f, -13.1f, 90, -90, 1e30f, -1e30f};
  for (int i = -1200; i <= 1200; ++i) numbers.push_back(static_cast<float>(i) / 100);
  return numbers;
}

double Probability(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double Density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// `relative` grows with x^2 where x is negative: the rounding of the exponent.
void ExpectNear(float actual, double expected, double x, double relative) {
  const double tolerance = relative * (x < -1 ? x * x : 1) * std::abs(expected);
  EXPECT_NEAR(actual, expected, tolerance + 1e-37) << x;
}

TEST(GateVectors, Exponentials) {
  const Floats x = Numbers();
  for (const float highest : {1e30f, 90.0f}) {
    Floats below, y;
    for (const float number : x) {
      if (number <= highest) below.push_back(number);
    }
    y.resize(below.size());
    ExponentialVectors(static_cast<int64_t>(below.size()), highest, below.data(), y.data());
    for (size_t i = 0; i < below.size(); ++i) {
      const float difference = below[i] - highest;
      EXPECT_NEAR(y[i], std::exp(double{difference}), 2.4e-7 * y[i] + 1.2e-38) << difference;
    }
  }
}

TEST(GateVectors, GatesAndTheirSlopes) {
  const Floats x = Numbers(), ones(x.size(), 1.0f);
  const auto n = static_cast<int64_t>(x.size());
  Floats gelu(x.size()), gelu_slope(x.size()), silu(x.size()), silu_slope(x.size());
  GeluVectors(n, x.data(), gelu.data());
  GeluGradientVectors(n, x.data(), ones.data(), gelu_slope.data());
  SiluVectors(n, x.data(), silu.data());
  SiluGradientVectors(n, x.data(), ones.data(), silu_slope.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i], p = Probability(d), s = Sigmoid(d);
    ExpectNear(gelu[i], d * p, d, 1e-6);
    EXPECT_NEAR(gelu_slope[i], p + (std::abs(d) > 1e6 ? 0 : d * Density(d)), 1e-6) << d;
    ExpectNear(silu[i], d * s, 0, 6e-7);
    EXPECT_NEAR(silu_slope[i], s + (std::abs(d) > 1e6 ? 0 : d * s * (1 - s)), 1e-6) << d;
  }
}

TEST(GateVectors, NotANumberStays) {
  const Floats x = {1, std::numeric_limits<float>::quiet_NaN(), -1};
  for (auto* const gate : {GeluVectors, SiluVectors}) {
    Floats y(3);
    gate(3, x.data(), y.data());
    EXPECT_TRUE(std::isfinite(y[0]) && std::isnan(y[1]) && std::isfinite(y[2]));
  }
  Floats y(3);
  ExponentialVectors(3, 1, x.data(), y.data());
  EXPECT_TRUE(y[0] == 1 && std::isnan(y[1]) && y[2] > 0);
}

TEST(GateVectors, AllInstructionSetsGiveTheSameBits) {
  const Floats x = Numbers(), ones(x.size(), 1.0f);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<Floats> first;
  ForEachInstructionSet([&] {
    std::vector<Floats> found(5, Floats(x.size()));
    ExponentialVectors(n, 1e30f, x.data(), found[0].data());
    GeluVectors(n, x.data(), found[1].data());
    GeluGradientVectors(n, x.data(), ones.data(), found[2].data());
    SiluVectors(n, x.data(), found[3].data());
    SiluGradientVectors(n, x.data(), ones.data(), found[4].data());
    if (first.empty()) first = found;
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(std::memcmp(found[k].data(), first[k].data(), x.size() * sizeof(float)), 0) << k;
    }
  });
}

}  // namespace
}  // namespace keelson
