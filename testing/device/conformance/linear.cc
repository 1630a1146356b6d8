#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Floats = reference::Floats;
using Doubles = reference::Doubles;

const std::vector<std::optional<ActivationKind>>& Activations() {
  static const auto& kinds = *new std::vector<std::optional<ActivationKind>>{
      std::nullopt, ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid};
  return kinds;
}

struct Extents {
  int64_t m, n, k;
};

TEST_P(DeviceConformanceTest, MultipliesMatrices) {
  for (const Extents& e : std::vector<Extents>{{1, 1, 1},
                                               {2, 3, 1},
                                               {3, 5, 7},
                                               {4, 4, 4},
                                               {64, 10, 129},
                                               {1, 33, 65},
                                               {31, 1, 17},
                                               {32, 33, 31},
                                               {70, 130, 50},
                                               {8, 16, 1027}}) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      SCOPED_TRACE(testing::Message() << e.m << "x" << e.n << "x" << e.k << " " << transposes);
      MatMulArgs args{e.m, e.n, e.k, (transposes & 1) != 0, (transposes & 2) != 0};
      const Floats a = Random(e.m * e.k, 1), b = Random(e.k * e.n, 2), c = Random(e.m * e.n, 3);
      const Output product = Garbage(e.m * e.n);
      device_->MatMul(args, *Input(a), *Input(b), {}, product.get());
      ExpectNear(product, reference::MatMul(args, a, b, c), ProductTolerance(e.k));
      args.alpha = -0.5f;
      args.beta = 2;
      const Output sum = InOut(c);
      device_->MatMul(args, *Input(a), *Input(b), {}, sum.get());
      ExpectNear(sum, reference::MatMul(args, a, b, c), ProductTolerance(e.k));
    }
  }
}

TEST_P(DeviceConformanceTest, AddsTheBiasAndActivatesAProduct) {
  for (const Extents& e : std::vector<Extents>{{1, 1, 1}, {5, 3, 7}, {33, 32, 16}, {16, 130, 9}}) {
    const Floats a = Random(e.m * e.k, 1), b = Random(e.k * e.n, 2), c = Random(e.m * e.n, 3);
    const Floats bias = Random(e.n, 4);
    for (const bool biased : {false, true}) {
      for (const auto& activation : Activations()) {
        for (const float beta : {0.0f, 0.5f}) {
          SCOPED_TRACE(testing::Message()
                       << e.m << "x" << e.n << "x" << e.k << " bias " << biased << " activation "
                       << (activation ? static_cast<int>(*activation) : -1) << " beta " << beta);
          MatMulArgs args{e.m, e.n, e.k, false, false};
          args.beta = beta;
          Doubles expected = reference::MatMul(args, a, b, c);
          for (size_t i = 0; i < expected.size(); ++i) {
            if (biased) expected[i] += bias[i % bias.size()];
            if (activation) expected[i] = reference::Activate(*activation, expected[i]);
          }
          const Memory bias_memory = Input(bias);
          const Output y = beta == 0 ? Garbage(e.m * e.n) : InOut(c);
          device_->MatMul(args, *Input(a), *Input(b),
                          {biased ? bias_memory.get() : nullptr, activation}, y.get());
          ExpectNear(y, expected, ProductTolerance(e.k));
        }
      }
    }
  }
}

TEST_P(DeviceConformanceTest, AProductKeepsNotANumberVisible) {
  for (const auto& activation : Activations()) {
    SCOPED_TRACE(activation ? static_cast<int>(*activation) : -1);
    // In an operand, and in the bias.
    const Output y = Garbage(4), z = Garbage(4);
    const Memory zeros = Input({0, 0}), bad_bias = Input({kNan, 0});
    device_->MatMul({2, 2, 2}, *Input({1, kNan, 2, 3}), *Input({1, 2, 3, 4}),
                    {zeros.get(), activation}, y.get());
    device_->MatMul({2, 2, 2}, *Input({1, 1, 2, 3}), *Input({1, 2, 3, 4}),
                    {bad_bias.get(), activation}, z.get());
    const Floats ys = Read(y), zs = Read(z);
    EXPECT_TRUE(std::isnan(ys[0]) && std::isnan(ys[1]));
    EXPECT_TRUE(std::isfinite(ys[2]) && std::isfinite(ys[3]));
    EXPECT_TRUE(std::isnan(zs[0]) && std::isnan(zs[2]));
    EXPECT_TRUE(std::isfinite(zs[1]) && std::isfinite(zs[3]));
  }
}

TEST_P(DeviceConformanceTest, ComputesTheGradientsOfADenseLayer) {
  for (const Extents& e : std::vector<Extents>{
           {1, 1, 1}, {3, 5, 7}, {128, 33, 10}, {257, 4, 3}, {32, 64, 130}, {1000, 7, 1}}) {
    const int64_t rows = e.m, inputs = e.n, units = e.k;
    SCOPED_TRACE(testing::Message() << rows << "x" << inputs << "x" << units);
    const Floats x = Random(rows * inputs, 5), dy = Random(rows * units, 6);
    const Doubles kernel_gradient =
        reference::MatMul({inputs, units, rows, true, false}, x, dy, {});
    const Output dkernel = Garbage(inputs * units), dbias = Garbage(units);
    device_->DenseGradients(rows, inputs, units, *Input(x), *Input(dy), dkernel.get(), dbias.get());
    ExpectNear(dkernel, kernel_gradient, ProductTolerance(rows));
    // A device may sum the columns within the product.
    ExpectNear(dbias, reference::ColumnSums(rows, units, dy), ProductTolerance(rows));
    const Output without_bias = Garbage(inputs * units);
    device_->DenseGradients(rows, inputs, units, *Input(x), *Input(dy), without_bias.get(),
                            nullptr);
    ExpectNear(without_bias, kernel_gradient, ProductTolerance(rows));
  }
}

TEST_P(DeviceConformanceTest, SumsTheGradientOfABias) {
  for (int64_t rows : {1, 3, 32, 257, 1000}) {
    for (int64_t cols : {1, 3, 4, 31, 32, 33, 67, 130}) {
      SCOPED_TRACE(testing::Message() << rows << "x" << cols);
      const Floats dy = Random(rows * cols, 4);
      const Output gradient = Garbage(cols);
      device_->BiasGradient(rows, cols, *Input(dy), gradient.get());
      ExpectNear(gradient, reference::ColumnSums(rows, cols, dy), SumTolerance(rows));
    }
  }
  const Output gradient = Garbage(2);
  device_->BiasGradient(2, 2, *Input({1, kNan, 3, 4}), gradient.get());
  ExpectNear(gradient, {4, kNan});
}

TEST_P(DeviceConformanceTest, AddsAndScalesVectors) {
  for (int64_t n : {1, 3, 4, 5, 31, 127, 128, 129, 1025, 40001}) {
    SCOPED_TRACE(n);
    const Floats x = Random(n, 6), y = Random(n, 7);
    const Output sum = InOut(y), scaled = InOut(x);
    device_->Axpy(-1.5f, n, *Input(x), sum.get());
    device_->Scale(0.25f, n, scaled.get());
    Doubles expected_sum(y.begin(), y.end()), expected_scaled(x.begin(), x.end());
    for (size_t i = 0; i < x.size(); ++i) expected_sum[i] -= 1.5 * x[i];
    for (double& value : expected_scaled) value *= 0.25;
    ExpectNear(sum, expected_sum);
    ExpectNear(scaled, expected_scaled, 0);
  }
}

TEST_P(DeviceConformanceTest, Sums) {
  for (int64_t n : {1, 3, 4, 5, 31, 32, 33, 255, 257, 1023, 1025, 200003}) {
    SCOPED_TRACE(n);
    const Floats x = Random(n, 8);
    double expected = 0;
    for (const float value : x) expected += value;
    const Output sum = Garbage(1);
    device_->Sum(n, *Input(x), sum.get());
    ExpectNear(sum, {expected}, SumTolerance(n));
  }
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    Floats x = Random(1000, 9);
    x[777] = bad;
    const Output sum = Garbage(1);
    device_->Sum(1000, *Input(x), sum.get());
    EXPECT_FALSE(std::isfinite(Read(sum)[0]));
  }
}

TEST_P(DeviceConformanceTest, ClipsByTheJointNorm) {
  const Memory a = Exact({2, -4}), b = Exact({4, 0, 8}), none = Allocate(0);
  DeviceMemory* const all[] = {a.get(), none.get(), b.get()};
  // Their norm is 10.
  device_->ClipByGlobalNorm(10.5f, all);
  EXPECT_EQ(Read(*a), Floats({2, -4}));
  EXPECT_EQ(Read(*b), Floats({4, 0, 8}));
  device_->ClipByGlobalNorm(5, all);
  ExpectNear(Read(*a), {1, -2}, 1e-6);
  ExpectNear(Read(*b), {2, 0, 4}, 1e-6);
}

TEST_P(DeviceConformanceTest, ClipsManyGradientsOfManySizes) {
  std::vector<Memory> memories;
  std::vector<DeviceMemory*> gradients;
  std::vector<Floats> values;
  double squares = 0;
  for (int64_t n : {1, 3, 4, 5, 31, 33, 127, 129, 1023, 1025, 100003, 2, 64}) {
    values.push_back(Random(n, static_cast<uint64_t>(n)));
    for (const float value : values.back()) squares += double{value} * value;
    memories.push_back(Exact(values.back()));
    gradients.push_back(memories.back().get());
  }
  const double norm = std::sqrt(squares);
  device_->ClipByGlobalNorm(2.5f, gradients);
  for (size_t i = 0; i < memories.size(); ++i) {
    SCOPED_TRACE(values[i].size());
    Doubles expected(values[i].begin(), values[i].end());
    for (double& value : expected) value *= 2.5 / norm;
    ExpectNear(Read(*memories[i]), expected, 1e-6);
  }
}

TEST_P(DeviceConformanceTest, SumsSquaresPreciselyToClip) {
  // The square of 1e4 swallows the others' in float32; that of 1e30 overflows.
  Floats uneven(100'001, 0.1f);
  uneven[0] = 1e4f;
  const Memory memory = Exact(uneven);
  DeviceMemory* const gradient[] = {memory.get()};
  const double norm = std::sqrt(1e8 + 1e5 * double{0.1f} * double{0.1f});
  device_->ClipByGlobalNorm(1e3f, gradient);
  EXPECT_NEAR(Read(*memory)[0], 1e7 / norm, 2e-4);
  EXPECT_NEAR(Read(*memory)[100'000], 1e3 * double{0.1f} / norm, 1e-8);
  const Memory large = Exact({1e30f, 0});
  DeviceMemory* const large_gradient[] = {large.get()};
  device_->ClipByGlobalNorm(1, large_gradient);
  ExpectNear(Read(*large), {1, 0}, 1e-6);
}

TEST_P(DeviceConformanceTest, DoesNotClipWhatIsNotFinite) {
  for (const float bad : {kInfinity, -kInfinity, kNan}) {
    const Memory a = Exact({bad, 3}), b = Exact({100});
    DeviceMemory* const all[] = {a.get(), b.get()};
    device_->ClipByGlobalNorm(1, all);
    EXPECT_FALSE(std::isfinite(Read(*a)[0]));
    EXPECT_EQ(Read(*a)[1], 3);
    EXPECT_EQ(Read(*b), Floats({100}));
  }
}

TEST_P(DeviceConformanceTest, AddsFromAPeer) {
  auto created = GetParam().create(1);
  if (absl::IsFailedPrecondition(created.status())) {
    GTEST_SKIP() << "skipped: " << created.status().message();
  }
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<Device> peer = *std::move(created);
  for (int64_t n : {1, 3, 4, 5, 1025, 40001}) {
    SCOPED_TRACE(n);
    const Floats y = Random(n, 10);
    const Output sum = InOut(y);
    const Memory x = *peer->Allocate(n + 3);
    Doubles expected(y.begin(), y.end());
    for (int i = 1; i <= 5; ++i) {
      // After the peer's operations so far; those that come later wait.
      peer->Fill(static_cast<float>(i), n, x.get());
      device_->AddFromPeer(peer.get(), n, *x, sum.get());
      for (double& value : expected) value += i;
      peer->Fill(-1000, n, x.get());
    }
    ExpectNear(sum, expected, 4e-6);
    ASSERT_TRUE(peer->Synchronize().ok());
  }
}

}  // namespace
}  // namespace keelson
