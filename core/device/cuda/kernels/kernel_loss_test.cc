#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using KernelLossTest = KernelTest;
using Floats = std::vector<float>;

constexpr float kWeight = 0.25f;

Floats Labels(int64_t rows, int64_t classes) {
  Floats labels;
  for (int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<float>((i * 7 + 3) % classes));
  return labels;
}

// Around the borders between scores in registers and in memory.
TEST_F(KernelLossTest, SoftmaxCrossEntropy) {
  for (auto [rows, classes] : {std::pair<int64_t, int64_t>{1, 1},
                               {3, 2},
                               {9, 10},
                               {600, 15},
                               {257, 16},
                               {70, 17},
                               {257, 31},
                               {5, 32},
                               {7, 33},
                               {8, 127},
                               {8, 128},
                               {3, 129},
                               {4, 511},
                               {2, 512},
                               {3, 513},
                               {2, 1024},
                               {2, 1025},
                               {1, 5000}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << classes << " classes");
    Floats scores = RandomFloats(rows * classes, 1);
    for (float& score : scores) score *= 20;
    const Floats labels = Labels(rows, classes);
    const auto expected = reference::SoftmaxCrossEntropy(classes, kWeight, scores, labels);
    GpuArray<float> s(scores), l(labels), losses(Poison(rows)), dscores(Poison(rows * classes));
    ASSERT_EQ(LaunchSoftmaxCrossEntropy(nullptr, rows, classes, kWeight, s.data(), l.data(),
                                        losses.data(), dscores.data()),
              cudaSuccess);
    ExpectClose(losses.Read(), expected.losses);
    ExpectClose(dscores.Read(), expected.dscores);
    GpuArray<float> losses_alone(Poison(rows));
    ASSERT_EQ(LaunchSoftmaxCrossEntropy(nullptr, rows, classes, kWeight, s.data(), l.data(),
                                        losses_alone.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(losses_alone.Read(), losses.Read());
  }
}

TEST_F(KernelLossTest, SoftmaxKeepsWhatIsNotFiniteVisible) {
  for (int64_t classes : {3, 20, 40, 600, 2000}) {
    for (float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Floats scores(2 * classes, 1.0f);
      scores[1] = value;
      GpuArray<float> s(scores), l({0, 0}), losses(Poison(2)), dscores(Poison(2 * classes));
      ASSERT_EQ(LaunchSoftmaxCrossEntropy(nullptr, 2, classes, 1, s.data(), l.data(), losses.data(),
                                          dscores.data()),
                cudaSuccess);
      EXPECT_TRUE(std::isnan(losses.Read()[0]));
      EXPECT_FALSE(std::isnan(losses.Read()[1])) << "rows are apart";
    }
  }
}

TEST_F(KernelLossTest, SigmoidCrossEntropyAndMeanSquaredError) {
  for (int64_t rows : kBorderSizes) {
    Floats scores = RandomFloats(rows, 2), labels = RandomFloats(rows, 3);
    for (float& score : scores) score *= 30;
    for (float& label : labels) label = (label + 1) / 2;
    const auto sigmoid = reference::SigmoidCrossEntropy(kWeight, scores, labels);
    const auto squares = reference::MeanSquaredError(kWeight, scores, labels);
    GpuArray<float> s(scores), l(labels), losses(Poison(rows)), dscores(Poison(rows));
    ASSERT_EQ(LaunchSigmoidCrossEntropy(nullptr, rows, kWeight, s.data(), l.data(), losses.data(),
                                        dscores.data()),
              cudaSuccess);
    ExpectClose(losses.Read(), sigmoid.losses);
    ExpectClose(dscores.Read(), sigmoid.dscores);
    ASSERT_EQ(LaunchMeanSquaredError(nullptr, rows, kWeight, s.data(), l.data(), losses.data(),
                                     dscores.data()),
              cudaSuccess);
    ExpectClose(losses.Read(), squares.losses);
    ExpectClose(dscores.Read(), squares.dscores);
    ASSERT_EQ(LaunchSigmoidCrossEntropy(nullptr, rows, kWeight, s.data(), l.data(), losses.data(),
                                        nullptr),
              cudaSuccess);
    ExpectClose(losses.Read(), sigmoid.losses);
    ASSERT_EQ(
        LaunchMeanSquaredError(nullptr, rows, kWeight, s.data(), l.data(), losses.data(), nullptr),
        cudaSuccess);
    ExpectClose(losses.Read(), squares.losses);
  }
}

TEST_F(KernelLossTest, HuberLoss) {
  for (int64_t rows : kBorderSizes) {
    SCOPED_TRACE(rows);
    const Floats scores = RandomFloats(rows, 4), targets = RandomFloats(rows, 5);
    const auto expected = reference::HuberLoss(0.5, kWeight, scores, targets);
    GpuArray<float> s(scores), t(targets), losses(Poison(rows)), dscores(Poison(rows));
    ASSERT_EQ(LaunchHuberLoss(nullptr, rows, 0.5f, kWeight, s.data(), t.data(), losses.data(),
                              dscores.data()),
              cudaSuccess);
    ExpectClose(losses.Read(), expected.losses);
    ExpectClose(dscores.Read(), expected.dscores);
    GpuArray<float> losses_alone(Poison(rows));
    ASSERT_EQ(LaunchHuberLoss(nullptr, rows, 0.5f, kWeight, s.data(), t.data(), losses_alone.data(),
                              nullptr),
              cudaSuccess);
    EXPECT_EQ(losses_alone.Read(), losses.Read());
  }
}

TEST_F(KernelLossTest, LaunchesNothingForNoRows) {
  EXPECT_EQ(LaunchSoftmaxCrossEntropy(nullptr, 0, 3, 1, nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(LaunchSigmoidCrossEntropy(nullptr, 0, 1, nullptr, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(LaunchMeanSquaredError(nullptr, 0, 1, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchHuberLoss(nullptr, 0, 1, 1, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
