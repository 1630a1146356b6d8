#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

using Doubles = reference::Doubles;

// Around a warp, what its threads keep of a row, and a block; rows around the warps of a block.
std::vector<std::pair<int64_t, int64_t>> SoftmaxExtents() {
  std::vector<std::pair<int64_t, int64_t>> extents;
  for (int64_t rows : {1, 7, 8, 9, 130}) {
    for (int64_t columns : {1, 2, 10, 31, 32, 33, 127, 128, 129}) {
      extents.emplace_back(rows, columns);
    }
  }
  for (int64_t columns : {255, 256, 257, 511, 512, 513, 1025, 5003}) {
    extents.emplace_back(3, columns);
  }
  extents.emplace_back(0, 5);
  extents.emplace_back(5, 0);
  return extents;
}

Doubles InDoubles(const reference::Floats& values) { return Doubles(values.begin(), values.end()); }

TEST_P(DeviceConformanceTest, ComputesSoftmax) {
  for (const auto& [rows, columns] : SoftmaxExtents()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    Floats x = Random(rows * columns, 60);
    for (float& value : x) value *= 8;
    const Output y = Garbage(rows * columns), in_place = InOut(x);
    device_->Softmax(rows, columns, *Input(x), y.get());
    device_->Softmax(rows, columns, *in_place, in_place.get());
    ExpectNear(y, reference::Softmax(columns, InDoubles(x)), 2e-6);
    EXPECT_EQ(Read(in_place), Read(y));
  }
}

TEST_P(DeviceConformanceTest, ComputesTheGradientOfSoftmax) {
  for (const auto& [rows, columns] : SoftmaxExtents()) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    Floats x = Random(rows * columns, 61);
    for (float& value : x) value *= 4;
    const Doubles outputs = reference::Softmax(columns, InDoubles(x));
    const Floats y(outputs.begin(), outputs.end()), dy = Random(rows * columns, 62);
    const Output dx = Garbage(rows * columns), in_place = InOut(dy);
    device_->SoftmaxBackward(rows, columns, *Input(y), *Input(dy), dx.get());
    device_->SoftmaxBackward(rows, columns, *Input(y), *in_place, in_place.get());
    ExpectNear(dx, reference::SoftmaxBackward(columns, InDoubles(y), dy), 1e-6);
    EXPECT_EQ(Read(in_place), Read(dx));
  }
}

TEST_P(DeviceConformanceTest, TheGradientOfSoftmaxIsItsSlope) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 5}, {2, 33}, {1, 130}}) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Floats x = Random(rows * columns, 63), weights = Random(rows * columns, 64);
    const auto loss = [&weights, c = columns](const Doubles& inputs) {
      const Doubles y = reference::Softmax(c, inputs);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
      return sum;
    };
    const Output y = Garbage(rows * columns), dx = Garbage(rows * columns);
    device_->Softmax(rows, columns, *Input(x), y.get());
    device_->SoftmaxBackward(rows, columns, *y, *Input(weights), dx.get());
    ExpectNear(dx, reference::FiniteDifferences(loss, InDoubles(x)), 1e-6);
  }
}

TEST_P(DeviceConformanceTest, SoftmaxIsStable) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Output y = Garbage(9);
  device_->Softmax(3, 3, *Input({5000, -5000, 5000, -90, -90, -90, -infinity, 3, -infinity}),
                   y.get());
  ExpectNear(y, {0.5, 0, 0.5, 1. / 3, 1. / 3, 1. / 3, 0, 1, 0}, 1e-7);
}

TEST_P(DeviceConformanceTest, SoftmaxKeepsNotANumberInItsRow) {
  for (int64_t columns : {5, 40, 600}) {
    SCOPED_TRACE(columns);
    Floats x = Random(3 * columns, 65);
    const Floats y = x;
    x[columns + 3] = kNan;
    const Output of_x = Garbage(3 * columns), of_dy = Garbage(3 * columns);
    device_->Softmax(3, columns, *Input(x), of_x.get());
    device_->SoftmaxBackward(3, columns, *Input(y), *Input(x), of_dy.get());
    for (const Floats& values : {Read(of_x), Read(of_dy)}) {
      for (int64_t i = 0; i < 3 * columns; ++i) {
        ASSERT_EQ(std::isnan(values[i]), i / columns == 1) << i;
      }
    }
  }
}

TEST_P(DeviceConformanceTest, RepeatsSoftmaxBitByBit) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{17, 33}, {2, 700}}) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    const Memory x = Allocate(rows * columns);
    const Output y = Garbage(rows * columns), dx = Garbage(rows * columns);
    const Output direct_y = Garbage(rows * columns), direct_dx = Garbage(rows * columns);
    for (uint64_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      device_->CopyToDevice(Random(rows * columns, 66 + i), x.get());
      const auto run = [&, r = rows, c = columns](const Output& out, const Output& gradient) {
        device_->Softmax(r, c, *x, out.get());
        device_->SoftmaxBackward(r, c, *out, *x, gradient.get());
      };
      run(direct_y, direct_dx);
      device_->Repeat(static_cast<uint64_t>(columns), [&] { run(y, dx); });
      EXPECT_EQ(Read(y), Read(direct_y));
      EXPECT_EQ(Read(dx), Read(direct_dx));
    }
  }
}

}  // namespace
}  // namespace keelson
