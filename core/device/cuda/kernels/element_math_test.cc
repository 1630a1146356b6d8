#include "core/device/cuda/kernels/element_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

constexpr ActivationKind kKinds[] = {ActivationKind::kRelu, ActivationKind::kTanh,
                                     ActivationKind::kSigmoid};

TEST(ElementMathTest, DrawsTheBitsOfTheCpusGenerator) {
  for (uint64_t key : {0ull, 1ull, 0x123456789abcdefull, ~0ull}) {
    for (uint64_t counter : {0ull, 1ull, 0xffffffffull, 0x100000000ull, ~0ull}) {
      const auto expected = Philox(key, 7 * key, counter);
      const PhiloxBits bits = PhiloxAt(key, 7 * key, counter);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(bits.word[i], expected[i]);
        EXPECT_EQ(UniformAt(bits.word[i]), UniformFloat(expected[i]));
      }
    }
  }
}

TEST(ElementMathTest, DropsOutTheSameElementsAsTheReference) {
  for (float rate : {0.0f, 0.5f, 0.9f}) {
    const std::vector<float> x(1000, 3.0f);
    const auto expected = reference::Dropout(rate, 99, 5, x);
    for (int64_t group = 0; 4 * group < 1000; ++group) {
      const Pack<4> y = DroppedOut(rate, 99, 5, group, {{3.0f, 3.0f, 3.0f, 3.0f}});
      for (int64_t j = 0; j < 4; ++j) {
        EXPECT_FLOAT_EQ(y.lane[j], expected[4 * group + j]) << group;
      }
    }
  }
}

TEST(ElementMathTest, ActivatesAsTheReference) {
  for (ActivationKind kind : kKinds) {
    for (float x : {-1000.0f, -5.0f, -0.1f, 0.0f, 0.1f, 5.0f, 1000.0f}) {
      const float y = Activated(kind, x);
      EXPECT_NEAR(y, reference::Activate(kind, x), 1e-6 * (1 + std::abs(x)));
      EXPECT_NEAR(ActivationGradient(kind, y, 2), 2 * reference::ActivateDerivative(kind, x), 1e-6);
    }
  }
}

TEST(ElementMathTest, ReluKeepsNotANumberVisible) {
  EXPECT_TRUE(std::isnan(Activated(ActivationKind::kRelu, std::nanf(""))));
}

TEST(ElementMathTest, SigmoidLossIsStable) {
  for (float score : {-1000.0f, -20.0f, -0.5f, 0.0f, 0.5f, 20.0f, 1000.0f}) {
    for (float label : {0.0f, 0.25f, 1.0f}) {
      const auto expected = reference::SigmoidCrossEntropy(1, {score}, {label}).losses[0];
      EXPECT_NEAR(SigmoidLoss(score, label), expected, 1e-6 * (1 + expected));
    }
  }
}

}  // namespace
}  // namespace keelson::cuda
