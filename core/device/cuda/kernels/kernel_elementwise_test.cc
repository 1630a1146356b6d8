#include <optional>
#include <utility>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_math.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using KernelElementwiseTest = KernelTest;
using Floats = std::vector<float>;

constexpr ActivationKind kKinds[] = {ActivationKind::kRelu, ActivationKind::kTanh,
                                     ActivationKind::kSigmoid};

// Calls visit(n, offset of x, offset of y) for sizes at borders, aligned alike and not.
template <typename Visit>
void ForEachExtent(Visit visit) {
  for (int64_t n : kBorderSizes) {
    for (auto [x_offset, y_offset] : {std::pair<size_t, size_t>{0, 0}, {1, 1}, {3, 3}, {0, 2}}) {
      SCOPED_TRACE(testing::Message() << n << " elements at " << x_offset << ", " << y_offset);
      visit(n, x_offset, y_offset);
    }
  }
}

TEST_F(KernelElementwiseTest, FillsAndScales) {
  ForEachExtent([](int64_t n, size_t offset, size_t) {
    GpuArray<float> x(Poison(n), offset);
    ASSERT_EQ(LaunchFill(nullptr, 3.0f, n, x.data()), cudaSuccess);
    EXPECT_EQ(x.Read(), Floats(n, 3.0f));
    ASSERT_EQ(LaunchScale(nullptr, -2.0f, n, x.data()), cudaSuccess);
    EXPECT_EQ(x.Read(), Floats(n, -6.0f));
  });
}

TEST_F(KernelElementwiseTest, AddsScaledElements) {
  ForEachExtent([](int64_t n, size_t x_offset, size_t y_offset) {
    const Floats a = RandomFloats(n, 1), b = RandomFloats(n, 2);
    GpuArray<float> x(a, x_offset), y(b, y_offset);
    ASSERT_EQ(LaunchAxpy(nullptr, 0.5f, n, x.data(), y.data()), cudaSuccess);
    std::vector<double> expected;
    for (size_t i = 0; i < a.size(); ++i) expected.push_back(b[i] + 0.5 * a[i]);
    ExpectClose(y.Read(), expected);
  });
}

TEST_F(KernelElementwiseTest, AddsAndMultiplies) {
  ForEachExtent([](int64_t n, size_t a_offset, size_t y_offset) {
    const Floats in_a = RandomFloats(n, 9), in_b = RandomFloats(n, 10);
    GpuArray<float> a(in_a, a_offset), b(in_b, y_offset), y(Poison(n), y_offset);
    ASSERT_EQ(LaunchAdd(nullptr, n, a.data(), b.data(), y.data()), cudaSuccess);
    ExpectClose(y.Read(), reference::Add(in_a, in_b), 0);
    ASSERT_EQ(LaunchMultiply(nullptr, n, a.data(), b.data(), b.data()), cudaSuccess);
    ExpectClose(b.Read(), reference::Multiply(in_a, in_b), 1e-7);
  });
}

TEST_F(KernelElementwiseTest, CopiesColumnsAlignedAndNot) {
  struct Case {
    int64_t rows, columns, from_columns, from_begin, to_columns, to_begin;
  };
  // The second to fourth in packs; in each after them one extent is not a multiple of four.
  for (const Case& c : std::vector<Case>{{300, 1, 1, 0, 2, 1},
                                         {257, 4, 8, 4, 12, 8},
                                         {5, 132, 136, 4, 132, 0},
                                         {2, 1024, 1024, 0, 2048, 1024},
                                         {33, 6, 8, 0, 8, 0},
                                         {33, 4, 9, 4, 8, 4},
                                         {33, 4, 8, 4, 9, 4},
                                         {33, 4, 8, 1, 8, 4},
                                         {33, 4, 8, 4, 8, 3},
                                         {129, 129, 129, 0, 129, 0},
                                         {0, 4, 8, 4, 8, 0},
                                         {3, 0, 8, 4, 8, 0}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.columns << " columns, "
                                    << c.from_columns << " -> " << c.to_columns);
    const Floats in = RandomFloats(c.rows * c.from_columns, 11);
    const Floats old = RandomFloats(c.rows * c.to_columns, 12);
    GpuArray<float> from(in), to(old);
    ASSERT_EQ(LaunchCopyColumns(nullptr, c.rows, c.columns, from.data() + c.from_begin,
                                c.from_columns, to.data() + c.to_begin, c.to_columns),
              cudaSuccess);
    ExpectClose(to.Read(),
                reference::CopyColumns(c.rows, c.columns, in, c.from_columns, c.from_begin, old,
                                       c.to_columns, c.to_begin),
                0);
  }
}

TEST_F(KernelElementwiseTest, ActivatesAndItsGradientToo) {
  for (ActivationKind kind : kKinds) {
    ForEachExtent([kind](int64_t n, size_t x_offset, size_t y_offset) {
      const Floats in = RandomFloats(n, 3), gradient = RandomFloats(n, 4);
      GpuArray<float> x(in, x_offset), y(Poison(n), y_offset), dy(gradient, x_offset);
      ASSERT_EQ(LaunchActivate(nullptr, kind, n, x.data(), y.data()), cudaSuccess);
      std::vector<double> outputs, gradients;
      for (size_t i = 0; i < in.size(); ++i) {
        outputs.push_back(reference::Activate(kind, in[i]));
        gradients.push_back(gradient[i] * reference::ActivateDerivative(kind, in[i]));
      }
      ExpectClose(y.Read(), outputs);
      ASSERT_EQ(LaunchActivateBackward(nullptr, kind, n, y.data(), dy.data(), dy.data()),
                cudaSuccess);
      ExpectClose(dy.Read(), gradients);
    });
  }
}

TEST_F(KernelElementwiseTest, GatesAndItsGradientToo) {
  for (GateKind kind : {GateKind::kGelu, GateKind::kSilu}) {
    ForEachExtent([kind](int64_t n, size_t x_offset, size_t y_offset) {
      Floats in = RandomFloats(n, 13);
      for (float& value : in) value *= 5;
      const Floats gradient = RandomFloats(n, 14);
      GpuArray<float> x(in, x_offset), y(Poison(n), y_offset), dy(gradient, y_offset);
      ASSERT_EQ(LaunchGate(nullptr, kind, n, x.data(), y.data()), cudaSuccess);
      ASSERT_EQ(LaunchGateBackward(nullptr, kind, n, x.data(), dy.data(), dy.data()), cudaSuccess);
      std::vector<double> outputs, gradients;
      for (size_t i = 0; i < in.size(); ++i) {
        outputs.push_back(reference::Gate(kind, in[i]));
        gradients.push_back(gradient[i] * reference::GateDerivative(kind, in[i]));
      }
      ExpectClose(y.Read(), outputs, 2e-6);
      ExpectClose(dy.Read(), gradients, 2e-6);
    });
  }
}

TEST_F(KernelElementwiseTest, UnrollsWhereItFillsAGpu) {
  for (int64_t n : {(int64_t{1} << 21), (int64_t{1} << 21) + 4 * 1029 + 3}) {
    Floats in(n);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    GpuArray<float> x(in), y(Floats(in.size(), 1.0f));
    ASSERT_EQ(LaunchAxpy(nullptr, 2.0f, n, x.data(), y.data()), cudaSuccess);
    const Floats out = y.Read();
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], 1.0f + 2.0f * static_cast<float>(i)) << i;
    }
  }
}

TEST_F(KernelElementwiseTest, DropsOutTheElementsOfTheSeedInMemory) {
  GpuArray<uint64_t> seed({99});
  ForEachExtent([&](int64_t n, size_t x_offset, size_t y_offset) {
    const Floats in = RandomFloats(n, 5);
    for (float rate : {0.0f, 0.5f, 0.9f}) {
      GpuArray<float> x(in, x_offset), y(Poison(n), y_offset);
      ASSERT_EQ(LaunchDropout(nullptr, rate, seed.data(), 7, n, x.data(), y.data()), cudaSuccess);
      ExpectClose(y.Read(), reference::Dropout(rate, 99, 7, in));
    }
  });
}

TEST_F(KernelElementwiseTest, RoundsToBfloat16) {
  ForEachExtent([](int64_t n, size_t x_offset, size_t y_offset) {
    const Floats in = RandomFloats(n, 6);
    GpuArray<float> x(in, x_offset);
    GpuArray<uint16_t> y(std::vector<uint16_t>(in.size(), 0xffff), y_offset);
    ASSERT_EQ(LaunchToBfloat16(nullptr, n, x.data(), y.data()), cudaSuccess);
    const std::vector<uint16_t> out = y.Read();
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], ToBfloat16(in[i])) << i;
  });
}

TEST_F(KernelElementwiseTest, AddsABiasAndActivates) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{1, 1},
                            {3, 4},
                            {257, 10},
                            {33, 132},
                            {5, 129},
                            {1025, 3},
                            {2, 1024},
                            {300, 64}}) {
    for (size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << cols << " columns at " << offset);
      const Floats in = RandomFloats(rows * cols, 7), bias = RandomFloats(cols, 8);
      const auto expect = [&, r = rows, c = cols](std::optional<ActivationKind> kind,
                                                  bool has_bias) {
        GpuArray<float> y(in, offset), b(bias, offset);
        ASSERT_EQ(
            LaunchBiasActivation(nullptr, r, c, has_bias ? b.data() : nullptr, kind, y.data()),
            cudaSuccess);
        std::vector<double> expected;
        for (size_t i = 0; i < in.size(); ++i) {
          const double x = in[i] + (has_bias ? double{bias[i % bias.size()]} : 0.0);
          expected.push_back(kind ? reference::Activate(*kind, x) : x);
        }
        ExpectClose(y.Read(), expected);
      };
      for (bool has_bias : {false, true}) {
        expect(std::nullopt, has_bias);
        for (ActivationKind kind : kKinds) expect(kind, has_bias);
      }
    }
  }
}

TEST_F(KernelElementwiseTest, LaunchesNothingForNoElements) {
  EXPECT_EQ(LaunchFill(nullptr, 0.0f, 0, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchActivate(nullptr, ActivationKind::kTanh, 0, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchDropout(nullptr, 0.5f, nullptr, 0, 0, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchToBfloat16(nullptr, 0, nullptr, nullptr), cudaSuccess);
  float bias = 0;
  EXPECT_EQ(LaunchBiasActivation(nullptr, 0, 3, &bias, std::nullopt, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

TEST_F(KernelElementwiseTest, FindsItsKernels) { EXPECT_EQ(FindKernels(), cudaSuccess); }

}  // namespace
}  // namespace keelson::cuda
