#include <cmath>
#include <numbers>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

constexpr GateKind kGates[] = {GateKind::kGelu, GateKind::kSilu};

TEST_P(DeviceConformanceTest, Gates) {
  for (GateKind kind : kGates) {
    for (int64_t n : {0, 1, 3, 4, 5, 15, 16, 17, 33, 127, 255, 256, 257, 1025, 20001}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << n);
      Floats x = Random(n, 40);
      for (float& value : x) value *= 6;
      const Floats dy = Random(n, 41);
      Doubles expected, expected_dx;
      for (size_t i = 0; i < x.size(); ++i) {
        expected.push_back(reference::Gate(kind, x[i]));
        expected_dx.push_back(dy[i] * reference::GateDerivative(kind, x[i]));
      }
      const Memory in = Input(x);
      const Output y = Garbage(n), dx = Garbage(n);
      device_->Gate(kind, n, *in, y.get());
      device_->GateBackward(kind, n, *in, *Input(dy), dx.get());
      ExpectNear(y, expected, 1e-6);
      ExpectNear(dx, expected_dx, 1e-6);
      const Output y_in_place = InOut(x), dx_in_place = InOut(dy);
      device_->Gate(kind, n, *y_in_place, y_in_place.get());
      device_->GateBackward(kind, n, *in, *dx_in_place, dx_in_place.get());
      EXPECT_EQ(Read(y_in_place), Read(y));
      EXPECT_EQ(Read(dx_in_place), Read(dx));
    }
  }
}

TEST_P(DeviceConformanceTest, TheGradientOfAGateIsItsSlope) {
  for (GateKind kind : kGates) {
    SCOPED_TRACE(static_cast<int>(kind));
    Floats x;
    for (float value = -6; value <= 6; value += 0.125f) x.push_back(value);
    const auto n = static_cast<int64_t>(x.size());
    const auto sum = [kind](const Doubles& inputs) {
      double total = 0;
      for (double input : inputs) total += reference::Gate(kind, input);
      return total;
    };
    const Output dx = Garbage(n);
    device_->GateBackward(kind, n, *Input(x), *Input(Floats(x.size(), 1.0f)), dx.get());
    ExpectNear(dx, reference::FiniteDifferences(sum, Doubles(x.begin(), x.end())), 1e-6);
  }
}

TEST_P(DeviceConformanceTest, GatesOfExtremes) {
  const Floats x = {-1000, -100, 0, 100, 1000};
  for (GateKind kind : kGates) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Output y = Garbage(5), dx = Garbage(5);
    device_->Gate(kind, 5, *Input(x), y.get());
    ExpectNear(y, {0, 0, 0, 100, 1000}, 1e-12);
    device_->GateBackward(kind, 5, *Input(x), *Input(Floats(5, 1.0f)), dx.get());
    ExpectNear(dx, {0, 0, 0.5, 1, 1}, 1e-7);
  }
}

// Where a small probability is the difference of two numbers, it has no digits left.
TEST_P(DeviceConformanceTest, GeluKeepsTheDigitsOfSmallProbabilities) {
  const Output y = Garbage(3);
  const Floats x = {-4, -5, -6};
  device_->Gate(GateKind::kGelu, 3, *Input(x), y.get());
  const Floats found = Read(y);
  for (size_t i = 0; i < 3; ++i) {
    const double expected = x[i] * 0.5 * std::erfc(-x[i] / std::numbers::sqrt2);
    EXPECT_NEAR(found[i] / expected, 1, 1e-5) << x[i];
  }
}

TEST_P(DeviceConformanceTest, GatesKeepNotANumberVisible) {
  for (GateKind kind : kGates) {
    const Memory x = Input({0, kNan, 2, -3, kNan}), ones = Input(Floats(5, 1.0f));
    const Output y = Garbage(5), dx = Garbage(5), of_dy = Garbage(5);
    device_->Gate(kind, 5, *x, y.get());
    device_->GateBackward(kind, 5, *x, *ones, dx.get());
    device_->GateBackward(kind, 5, *ones, *x, of_dy.get());
    for (const Floats& values : {Read(y), Read(dx), Read(of_dy)}) {
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(values[i]), i == 1 || i == 4) << i;
    }
  }
}

TEST_P(DeviceConformanceTest, RepeatsGates) {
  constexpr int64_t kElements = 300;
  const Memory x = Allocate(kElements);
  const Output y = Garbage(kElements), dx = Garbage(kElements);
  const Output direct_y = Garbage(kElements), direct_dx = Garbage(kElements);
  for (uint64_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    device_->CopyToDevice(Random(kElements, 50 + i), x.get());
    const auto run = [&](const Output& out, const Output& gradient) {
      device_->Gate(GateKind::kGelu, kElements, *x, out.get());
      device_->Gate(GateKind::kSilu, kElements, *out, out.get());
      device_->GateBackward(GateKind::kGelu, kElements, *x, *out, gradient.get());
      device_->GateBackward(GateKind::kSilu, kElements, *x, *gradient, gradient.get());
    };
    run(direct_y, direct_dx);
    device_->Repeat(12, [&] { run(y, dx); });
    EXPECT_EQ(Read(y), Read(direct_y));
    EXPECT_EQ(Read(dx), Read(direct_dx));
  }
}

}  // namespace
}  // namespace keelson
