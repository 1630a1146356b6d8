// The tests that every Device passes. A test program includes this once per binary and instantiates
// the suite for its device:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest, testing::Values(&MakeCpuDevice));
//
// A factory that answers FAILED_PRECONDITION (no such hardware here) skips the tests.
#ifndef KEELSON_CORE_DEVICE_DEVICE_CONFORMANCE_H_
#define KEELSON_CORE_DEVICE_DEVICE_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/random.h"
#include "core/device/device.h"
#include "core/device/reference_operations.h"

namespace keelson {

using DeviceFactory = absl::StatusOr<std::unique_ptr<Device>> (*)();

class DeviceConformanceTest : public testing::TestWithParam<DeviceFactory> {
 protected:
  using Floats = reference::Floats;
  using Doubles = reference::Doubles;
  using Memory = std::unique_ptr<DeviceMemory>;

  void SetUp() override {
    auto device = GetParam()();
    if (absl::IsFailedPrecondition(device.status())) {
      GTEST_SKIP() << "skipped: " << device.status().message();
    }
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  // Uniform in [-1, 1).
  static Floats Random(int64_t n, uint64_t seed) {
    Floats values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 2.0f * UniformFloat(Philox(seed, 7, i)[0]) - 1.0f;
    }
    return values;
  }

  Memory Allocate(int64_t n) {
    auto memory = device_->Allocate(n);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }
  Memory Upload(const Floats& values) {
    Memory memory = Allocate(static_cast<int64_t>(values.size()));
    device_->CopyToDevice(values, memory.get());
    return memory;
  }
  // Memory that an operation has to overwrite.
  Memory Garbage(int64_t n) {
    return Upload(Floats(static_cast<size_t>(n), std::numeric_limits<float>::quiet_NaN()));
  }
  Floats Download(const Memory& memory) {
    Floats values(static_cast<size_t>(memory->size()));
    const absl::Status status = device_->CopyToHost(*memory, absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  // What rounding may do to a sum of `terms` products of numbers up to 1: it walks at random.
  static double SumTolerance(int64_t terms) { return 2e-6 * std::sqrt(static_cast<double>(terms)); }

  void ExpectNear(const Memory& actual, const Doubles& expected, double tolerance = 2e-6) {
    const Floats values = Download(actual);
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i])))
          << "element " << i;
    }
  }

  std::unique_ptr<Device> device_;
};

inline std::vector<ConvGeometry> ConvGeometries() {
  // batch, in height, width, channels, out height, width, channels, kernel, stride, pad top, left
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},       // the smallest
      {2, 5, 7, 3, 5, 7, 4, 1, 1, 0, 0},       // 1 x 1
      {5, 28, 28, 1, 24, 24, 32, 5, 1, 0, 0},  // LeNet's first
      {3, 12, 12, 32, 8, 8, 64, 5, 1, 0, 0},   // LeNet's second
      {3, 9, 7, 3, 9, 7, 5, 3, 1, 1, 1},       // SAME, odd channels
      {2, 8, 8, 2, 4, 4, 3, 3, 2, 0, 0},       // SAME, stride 2: padding at the end only
      {2, 7, 10, 17, 4, 5, 19, 3, 2, 1, 0},    // SAME, stride 2, the axes differ
      {7, 8, 9, 5, 3, 4, 6, 3, 2, 0, 0},       // VALID: the last row is not used
      {1, 11, 11, 4, 2, 2, 3, 2, 6, 0, 0},     // stride beyond the kernel
      {2, 6, 6, 3, 6, 6, 8, 4, 1, 1, 1},       // SAME, even kernel: one more at the end
      {33, 4, 4, 16, 4, 4, 16, 3, 1, 1, 1},    // odd batch
      {2, 3, 3, 2, 1, 1, 9, 3, 1, 0, 0},       // one output pixel
  };
}

inline std::vector<PoolGeometry> PoolGeometries() {
  // batch, in height, width, channels, out height, width, size, stride, pad top, left
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},       // the smallest
      {3, 24, 24, 32, 12, 12, 2, 2, 0, 0},  // LeNet's
      {2, 7, 5, 3, 3, 2, 2, 2, 0, 0},       // VALID: the last row and column are not used
      {2, 7, 5, 3, 4, 3, 2, 2, 0, 0},       // SAME: padding at the end
      {2, 9, 8, 17, 5, 4, 3, 2, 1, 0},      // windows overlap
      {5, 6, 7, 5, 6, 7, 3, 1, 1, 1},       // SAME, stride 1
      {1, 9, 9, 2, 2, 2, 2, 5, 0, 0},       // gaps between windows
  };
}

TEST_P(DeviceConformanceTest, HasAName) { EXPECT_FALSE(device_->name().empty()); }

TEST_P(DeviceConformanceTest, MemoryStartsAsZeros) {
  EXPECT_EQ(Download(Allocate(1001)), Floats(1001, 0.0f));
  EXPECT_EQ(Allocate(0)->size(), 0);
}

TEST_P(DeviceConformanceTest, HostSpanIsTheMemoryItselfOrEmpty) {
  const Floats values = Random(100, 1);
  const Memory memory = Upload(values);
  const absl::Span<float> host = device_->HostSpan(memory.get());
  if (host.empty()) GTEST_SKIP() << "skipped: the host cannot use this device's memory";
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(Floats(host.begin(), host.end()), values);
  host[99] = 7;
  EXPECT_EQ(Download(memory).back(), 7);
  // Onto itself.
  device_->CopyToDevice(host.subspan(0, 50), memory.get());
  ASSERT_TRUE(device_->CopyToHost(*memory, host.subspan(0, 60)).ok());
  EXPECT_EQ(Download(memory), Floats(host.begin(), host.end()));
}

TEST_P(DeviceConformanceTest, CopiesThereAndBack) {
  const Floats values = Random(777, 1);
  const Memory memory = Upload(values);
  EXPECT_EQ(memory->size(), 777);
  EXPECT_EQ(Download(memory), values);
}

TEST_P(DeviceConformanceTest, TouchesLeadingElementsOnly) {
  const Memory memory = Upload({1, 2, 3, 4, 5});
  device_->CopyToDevice(Floats{9, 8}, memory.get());
  device_->Fill(7, 1, memory.get());
  EXPECT_EQ(Download(memory), Floats({7, 8, 3, 4, 5}));
  Floats two(2);
  ASSERT_TRUE(device_->CopyToHost(*memory, absl::MakeSpan(two)).ok());
  EXPECT_EQ(two, Floats({7, 8}));
}

TEST_P(DeviceConformanceTest, HostMemoryMayBeReusedAfterACopy) {
  Floats values(100000, 1.0f);
  const Memory memory = Allocate(100000);
  device_->CopyToDevice(values, memory.get());
  std::fill(values.begin(), values.end(), 2.0f);
  EXPECT_EQ(Download(memory), Floats(100000, 1.0f));
}

TEST_P(DeviceConformanceTest, MultipliesMatrices) {
  struct Extents {
    int64_t m, n, k;
  };
  for (const Extents& e : std::vector<Extents>{
           {1, 1, 1}, {3, 5, 7}, {64, 10, 129}, {1, 33, 65}, {31, 1, 17}, {70, 130, 50}}) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      SCOPED_TRACE(testing::Message() << e.m << "x" << e.n << "x" << e.k << " " << transposes);
      MatMulArgs args{e.m, e.n, e.k, (transposes & 1) != 0, (transposes & 2) != 0};
      const Floats a = Random(e.m * e.k, 1), b = Random(e.k * e.n, 2), c = Random(e.m * e.n, 3);
      const Memory product = Garbage(e.m * e.n);
      device_->MatMul(args, *Upload(a), *Upload(b), product.get());
      ExpectNear(product, reference::MatMul(args, a, b, c), SumTolerance(e.k));
      args.alpha = -0.5f;
      args.beta = 2;
      const Memory sum = Upload(c);
      device_->MatMul(args, *Upload(a), *Upload(b), sum.get());
      ExpectNear(sum, reference::MatMul(args, a, b, c), SumTolerance(e.k));
    }
  }
}

TEST_P(DeviceConformanceTest, AddsBiasAndSumsItsGradient) {
  for (int64_t rows : {1, 3, 257, 1000}) {
    for (int64_t cols : {1, 3, 32, 67}) {
      SCOPED_TRACE(testing::Message() << rows << "x" << cols);
      const Floats values = Random(rows * cols, 4), bias = Random(cols, 5);
      const Memory y = Upload(values);
      device_->AddBias(rows, cols, *Upload(bias), y.get());
      Doubles expected(values.begin(), values.end());
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
      ExpectNear(y, expected);
      const Memory gradient = Garbage(cols);
      device_->BiasGradient(rows, cols, *Upload(values), gradient.get());
      ExpectNear(gradient, reference::ColumnSums(rows, cols, values), SumTolerance(rows));
    }
  }
}

TEST_P(DeviceConformanceTest, AddsAndScalesVectors) {
  for (int64_t n : {1, 31, 40001}) {
    const Floats x = Random(n, 6), y = Random(n, 7);
    const Memory sum = Upload(y), scaled = Upload(x);
    device_->Axpy(-1.5f, n, *Upload(x), sum.get());
    device_->Scale(0.25f, n, scaled.get());
    Doubles expected_sum(y.begin(), y.end()), expected_scaled(x.begin(), x.end());
    for (size_t i = 0; i < x.size(); ++i) expected_sum[i] -= 1.5 * x[i];
    for (double& value : expected_scaled) value *= 0.25;
    ExpectNear(sum, expected_sum);
    ExpectNear(scaled, expected_scaled);
  }
}

TEST_P(DeviceConformanceTest, Convolves) {
  for (const ConvGeometry& g : ConvGeometries()) {
    SCOPED_TRACE(testing::Message() << g.in_height << "x" << g.in_width << "x" << g.in_channels
                                    << " kernel " << g.kernel << " stride " << g.stride);
    const Floats x = Random(g.in_size(), 8), filter = Random(g.filter_size(), 9);
    const Floats dy = Random(g.out_size(), 10);
    const Memory y = Garbage(g.out_size()), dx = Garbage(g.in_size());
    const Memory dfilter = Garbage(g.filter_size());
    device_->Conv2D(g, *Upload(x), *Upload(filter), y.get());
    device_->Conv2DBackwardData(g, *Upload(filter), *Upload(dy), dx.get());
    device_->Conv2DBackwardFilter(g, *Upload(x), *Upload(dy), dfilter.get());
    const int64_t window = g.kernel * g.kernel;
    ExpectNear(y, reference::Conv2D(g, x, filter), SumTolerance(window * g.in_channels));
    ExpectNear(dx, reference::Conv2DBackwardData(g, filter, dy),
               SumTolerance(window * g.out_channels));
    ExpectNear(dfilter, reference::Conv2DBackwardFilter(g, x, dy),
               SumTolerance(g.batch * g.out_height * g.out_width));
  }
}

TEST_P(DeviceConformanceTest, Pools) {
  for (const PoolGeometry& g : PoolGeometries()) {
    SCOPED_TRACE(testing::Message() << g.in_height << "x" << g.in_width << "x" << g.channels
                                    << " size " << g.size << " stride " << g.stride);
    const Floats x = Random(g.in_size(), 11), dy = Random(g.out_size(), 12);
    const Memory in = Upload(x), gradient = Upload(dy);
    const Memory max = Garbage(g.out_size()), max_dx = Garbage(g.in_size());
    device_->MaxPool(g, *in, max.get());
    device_->MaxPoolBackward(g, *in, *max, *gradient, max_dx.get());
    const Memory avg = Garbage(g.out_size()), avg_dx = Garbage(g.in_size());
    device_->AvgPool(g, *in, avg.get());
    device_->AvgPoolBackward(g, *gradient, avg_dx.get());
    ExpectNear(max, reference::MaxPool(g, x));
    ExpectNear(max_dx, reference::MaxPoolBackward(g, x, dy));
    ExpectNear(avg, reference::AvgPool(g, x));
    ExpectNear(avg_dx, reference::AvgPoolBackward(g, dy));
  }
}

TEST_P(DeviceConformanceTest, OfEqualMaximaTheFirstTakesTheGradient) {
  const PoolGeometry g{1, 2, 4, 1, 1, 2, 2, 2, 0, 0};
  const Memory x = Upload({0, 0, -1, 5, 0, 0, 5, 5}), y = Allocate(2), dx = Garbage(8);
  device_->MaxPool(g, *x, y.get());
  device_->MaxPoolBackward(g, *x, *y, *Upload({1, 2}), dx.get());
  EXPECT_EQ(Download(y), Floats({0, 5}));
  EXPECT_EQ(Download(dx), Floats({1, 0, 0, 2, 0, 0, 0, 0}));
}

TEST_P(DeviceConformanceTest, Activates) {
  for (ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid}) {
    for (int64_t n : {1, 33, 20001}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << n);
      Floats x = Random(n, 13);
      for (float& value : x) value *= 4;
      const Floats dy = Random(n, 14);
      Doubles expected, expected_dx;
      for (size_t i = 0; i < x.size(); ++i) {
        expected.push_back(reference::Activate(kind, x[i]));
        expected_dx.push_back(dy[i] * reference::ActivateDerivative(kind, x[i]));
      }
      const Memory y = Garbage(n), dx = Garbage(n);
      device_->Activate(kind, n, *Upload(x), y.get());
      device_->ActivateBackward(kind, n, *y, *Upload(dy), dx.get());
      ExpectNear(y, expected);
      ExpectNear(dx, expected_dx);
      const Memory y_in_place = Upload(x), dx_in_place = Upload(dy);
      device_->Activate(kind, n, *y_in_place, y_in_place.get());
      device_->ActivateBackward(kind, n, *y, *dx_in_place, dx_in_place.get());
      EXPECT_EQ(Download(y_in_place), Download(y));
      EXPECT_EQ(Download(dx_in_place), Download(dx));
    }
  }
}

TEST_P(DeviceConformanceTest, ActivatesExtremes) {
  const Floats x = {-1000, -100, 0, 100, 1000};
  const Memory y = Allocate(5), dx = Allocate(5), ones = Upload(Floats(5, 1.0f));
  device_->Activate(ActivationKind::kSigmoid, 5, *Upload(x), y.get());
  ExpectNear(y, {0, 0, 0.5, 1, 1}, 1e-7);
  device_->Activate(ActivationKind::kTanh, 5, *Upload(x), y.get());
  ExpectNear(y, {-1, -1, 0, 1, 1}, 1e-7);
  device_->Activate(ActivationKind::kRelu, 5, *Upload(x), y.get());
  device_->ActivateBackward(ActivationKind::kRelu, 5, *y, *ones, dx.get());
  ExpectNear(dx, {0, 0, 0, 1, 1}, 0);
}

TEST_P(DeviceConformanceTest, NotANumberStaysVisible) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Memory x = Upload({nan, 1, 2, 3}), y = Allocate(4);
  device_->Activate(ActivationKind::kRelu, 4, *x, y.get());
  EXPECT_TRUE(std::isnan(Download(y)[0]));
  device_->MaxPool({1, 2, 2, 1, 1, 1, 2, 2, 0, 0}, *x, y.get());
  EXPECT_TRUE(std::isnan(Download(y)[0]));
}

TEST_P(DeviceConformanceTest, DropsOutByTheCounterBasedGenerator) {
  const uint64_t seed = 0x123456789abcdefull;
  for (int64_t n : {1, 4, 35, 20003}) {
    for (float rate : {0.0f, 0.3f, 0.75f}) {
      SCOPED_TRACE(testing::Message() << n << " " << rate);
      const Floats x = Random(n, 15);
      const Memory y = Garbage(n), in_place = Upload(x);
      device_->Dropout(rate, seed, n, *Upload(x), y.get());
      device_->Dropout(rate, seed, n, *in_place, in_place.get());
      ExpectNear(y, reference::Dropout(rate, seed, x), 1e-6);
      EXPECT_EQ(Download(in_place), Download(y));
    }
  }
}

TEST_P(DeviceConformanceTest, ComputesSoftmaxCrossEntropy) {
  for (int64_t rows : {1, 13, 300}) {
    for (int64_t classes : {2, 10, 131}) {
      SCOPED_TRACE(testing::Message() << rows << "x" << classes);
      Floats scores = Random(rows * classes, 16), labels;
      for (float& score : scores) score *= 10;
      for (int64_t row = 0; row < rows; ++row) {
        labels.push_back(static_cast<float>((row * 7 + 1) % classes));
      }
      const Memory losses = Garbage(rows), dscores = Garbage(rows * classes);
      device_->SoftmaxCrossEntropy(rows, classes, *Upload(scores), *Upload(labels), losses.get(),
                                   dscores.get());
      const auto expected = reference::SoftmaxCrossEntropy(classes, scores, labels);
      ExpectNear(losses, expected.losses);
      ExpectNear(dscores, expected.dscores, 1e-6);
    }
  }
}

TEST_P(DeviceConformanceTest, SoftmaxCrossEntropyIsStable) {
  const Memory losses = Allocate(2), dscores = Allocate(4);
  device_->SoftmaxCrossEntropy(2, 2, *Upload({5000, -5000, 5000, -5000}), *Upload({0, 1}),
                               losses.get(), dscores.get());
  EXPECT_EQ(Download(losses), Floats({0, 10000}));
  ExpectNear(dscores, {0, 0, 0.5, -0.5}, 1e-7);
}

TEST_P(DeviceConformanceTest, ComputesSigmoidCrossEntropy) {
  const Floats scores = {-200, -3, -0.5, 0, 0.25, 2, 100};
  const Floats labels = {0, 1, 0, 1, 0, 1, 0};
  const Memory losses = Garbage(7), dscores = Garbage(7);
  device_->SigmoidCrossEntropy(7, *Upload(scores), *Upload(labels), losses.get(), dscores.get());
  const auto expected = reference::SigmoidCrossEntropy(scores, labels);
  ExpectNear(losses, expected.losses, 1e-6);
  ExpectNear(dscores, expected.dscores, 1e-6);
}

TEST_P(DeviceConformanceTest, ComputesMeanSquaredError) {
  const Floats scores = Random(301, 17), targets = Random(301, 18);
  const Memory losses = Garbage(301), dscores = Garbage(301);
  device_->MeanSquaredError(301, *Upload(scores), *Upload(targets), losses.get(), dscores.get());
  const auto expected = reference::MeanSquaredError(scores, targets);
  ExpectNear(losses, expected.losses, 1e-6);
  ExpectNear(dscores, expected.dscores, 1e-6);
}

TEST_P(DeviceConformanceTest, LossesWithoutGradients) {
  const Memory scores = Upload({1, 2}), labels = Upload({0, 1}), losses = Allocate(2);
  device_->SoftmaxCrossEntropy(1, 2, *scores, *labels, losses.get(), nullptr);
  EXPECT_NEAR(Download(losses)[0], std::log(1 + std::exp(1.0)), 1e-6);
  device_->SigmoidCrossEntropy(2, *scores, *labels, losses.get(), nullptr);
  EXPECT_NEAR(Download(losses)[1], std::log(1 + std::exp(-2.0)), 1e-6);
  device_->MeanSquaredError(2, *scores, *labels, losses.get(), nullptr);
  EXPECT_EQ(Download(losses), Floats({1, 1}));
}

TEST_P(DeviceConformanceTest, RepeatsBitByBit) {
  const ConvGeometry g{9, 12, 12, 32, 8, 8, 64, 5, 1, 0, 0};
  const Memory x = Upload(Random(g.in_size(), 19)), dy = Upload(Random(g.out_size(), 20));
  const Memory filter = Upload(Random(g.filter_size(), 21));
  const auto run = [&] {
    const Memory y = Garbage(g.out_size()), dx = Garbage(g.in_size());
    const Memory dfilter = Garbage(g.filter_size()), dbias = Garbage(g.out_channels);
    const Memory product = Garbage(64 * 64);
    device_->Conv2D(g, *x, *filter, y.get());
    device_->Conv2DBackwardData(g, *filter, *dy, dx.get());
    device_->Conv2DBackwardFilter(g, *x, *dy, dfilter.get());
    device_->BiasGradient(g.batch * 64, g.out_channels, *dy, dbias.get());
    device_->MatMul({64, 64, 300, true, false}, *x, *dy, product.get());
    return std::vector<Floats>{Download(y), Download(dx), Download(dfilter), Download(dbias),
                               Download(product)};
  };
  const std::vector<Floats> first = run();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(), first);
}

TEST_P(DeviceConformanceTest, TheFirstFailureStays) {
  EXPECT_TRUE(device_->Synchronize().ok());
  const Memory small = Upload({1, 2, 3});
  device_->Fill(0, 4, small.get());
  device_->Scale(2, 3, small.get());
  const absl::Status status = device_->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Fill: expected memory of 4 floats, found 3"));
  Floats values(3);
  EXPECT_EQ(device_->CopyToHost(*small, absl::MakeSpan(values)), status);
  device_->Axpy(1, 100, *small, small.get());
  EXPECT_EQ(device_->Synchronize(), status);
}

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_DEVICE_CONFORMANCE_H_
