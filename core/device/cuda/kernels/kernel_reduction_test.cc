#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using KernelReductionTest = KernelTest;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float SumOf(const Floats& values, size_t offset = 0) {
  const auto n = static_cast<int64_t>(values.size());
  GpuArray<float> x(values, offset), scratch(Poison(SumScratch(n))), sum(Poison(1));
  EXPECT_EQ(LaunchSum(nullptr, n, x.data(), scratch.data(), sum.data()), cudaSuccess);
  return sum.Read()[0];
}

TEST_F(KernelReductionTest, Sums) {
  std::vector<int64_t> sizes(std::begin(kBorderSizes), std::end(kBorderSizes));
  for (int64_t n : {4096, 4097, 100003}) sizes.push_back(n);
  for (int64_t n : sizes) {
    const Floats x = RandomFloats(n, 1);
    double expected = 0;
    for (float value : x) expected += value;
    for (size_t offset : {0, 1})
      EXPECT_NEAR(SumOf(x, offset), expected, 1e-6 * (1 + std::abs(expected)));
  }
}

TEST_F(KernelReductionTest, SumsNothingToZero) { EXPECT_EQ(SumOf({}), 0.0f); }

TEST_F(KernelReductionTest, SumsKeepSmallElementsBesideLargeOnes) {
  EXPECT_EQ(SumOf({1e9f, 1.0f, -1e9f, 1.0f, 1.0f}), 3.0f);
}

TEST_F(KernelReductionTest, SumsKeepWhatIsNotFiniteVisible) {
  Floats x(3000, 1.0f);
  x[2999] = kInfinity;
  EXPECT_EQ(SumOf(x), kInfinity);
  x[17] = -kInfinity;
  EXPECT_TRUE(std::isnan(SumOf(x)));
}

TEST_F(KernelReductionTest, SumsColumns) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{1, 1},
                            {1, 5},
                            {7, 1},
                            {1000, 1},
                            {9, 3},
                            {513, 4},
                            {65, 31},
                            {64, 32},
                            {40, 33},
                            {257, 127},
                            {100, 128},
                            {2050, 129},
                            {5, 1025},
                            {4000, 12},
                            {70000, 2}}) {
    const Floats in = RandomFloats(rows * cols, 2);
    const auto expected = reference::ColumnSums(rows, cols, in);
    for (size_t offset : {0, 2}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << cols << " columns at " << offset);
      GpuArray<float> x(in, offset), scratch(Poison(ColumnSumsScratch(rows, cols))),
          sums(Poison(cols));
      ASSERT_EQ(LaunchColumnSums(nullptr, rows, cols, x.data(), scratch.data(), sums.data()),
                cudaSuccess);
      ExpectClose(sums.Read(), expected);
    }
  }
}

TEST_F(KernelReductionTest, ColumnsWithoutRowsSumToZero) {
  GpuArray<float> sums(Poison(3));
  ASSERT_EQ(LaunchColumnSums(nullptr, 0, 3, nullptr, nullptr, sums.data()), cudaSuccess);
  EXPECT_EQ(sums.Read(), Floats(3, 0.0f));
}

// Clips arrays of the given values.
std::vector<Floats> Clipped(float max_norm, const std::vector<Floats>& gradients, size_t offset) {
  std::vector<std::unique_ptr<GpuArray<float>>> memory;
  std::vector<FloatArray> arrays;
  for (const Floats& gradient : gradients) {
    memory.push_back(std::make_unique<GpuArray<float>>(gradient, offset));
    arrays.push_back({memory.back()->data(), static_cast<int64_t>(gradient.size())});
  }
  const auto n = static_cast<int64_t>(arrays.size());
  GpuArray<float> scratch(Poison(ClipScratch(n)));
  EXPECT_EQ(LaunchClipByGlobalNorm(nullptr, max_norm, arrays.data(), n, scratch.data()),
            cudaSuccess);
  std::vector<Floats> clipped;
  for (const auto& array : memory) clipped.push_back(array->Read());
  return clipped;
}

void ExpectScaled(const std::vector<Floats>& gradients, float max_norm, size_t offset) {
  double squares = 0;
  for (const Floats& gradient : gradients) {
    for (float value : gradient) squares += double{value} * value;
  }
  const double scale = std::min(1.0, max_norm / std::sqrt(squares));
  const auto clipped = Clipped(max_norm, gradients, offset);
  for (size_t i = 0; i < gradients.size(); ++i) {
    std::vector<double> expected;
    for (float value : gradients[i]) expected.push_back(value * scale);
    ExpectClose(clipped[i], expected, 1e-6);
  }
}

TEST_F(KernelReductionTest, ClipsTheJointNorm) {
  for (size_t offset : {0, 3}) {
    ExpectScaled({{3, 4}}, 1, offset);
    ExpectScaled({{3}, {}, {4}}, 10, offset);
    ExpectScaled({RandomFloats(1, 1), RandomFloats(1023, 2), RandomFloats(40001, 3)}, 0.5f, offset);
  }
}

TEST_F(KernelReductionTest, ClipsMoreArraysThanOneLaunchHolds) {
  std::vector<Floats> gradients;
  for (uint64_t i = 0; i < 300; ++i) gradients.push_back(RandomFloats(1 + i % 9, i));
  ExpectScaled(gradients, 2, 0);
}

TEST_F(KernelReductionTest, ClipsAGradientWhoseSquaresAreNotFloats) {
  ExpectScaled({{3e30f, 4e30f}}, 1, 0);
}

TEST_F(KernelReductionTest, LeavesGradientsThatAreShortOrNotFinite) {
  EXPECT_EQ(Clipped(5, {{3, 4}}, 0)[0], (Floats{3, 4}));
  EXPECT_EQ(Clipped(1, {{3, 4}, {kInfinity}}, 0)[0], (Floats{3, 4}));
  EXPECT_EQ(Clipped(1, {{3, 4}, {std::nanf("")}}, 0)[0], (Floats{3, 4}));
  EXPECT_EQ(LaunchClipByGlobalNorm(nullptr, 1, nullptr, 0, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace keelson::cuda
