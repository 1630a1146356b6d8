#include <cmath>
#include <cstdint>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

struct GlobalPool {
  int64_t rows, positions, channels;

  int64_t in_size() const { return rows * positions * channels; }
  int64_t out_size() const { return rows * channels; }
};

std::vector<GlobalPool> GlobalPools() {
  std::vector<GlobalPool> pools = {{0, 3, 4}, {2, 3, 0}, {1030, 2, 1}, {3, 49, 260}, {2, 3000, 5}};
  for (int64_t rows : {1, 3}) {
    for (int64_t positions : {1, 2, 7, 8, 9, 64, 257}) {
      for (int64_t channels : {1, 3, 4, 31, 32, 33, 130}) {
        pools.push_back({rows, positions, channels});
      }
    }
  }
  return pools;
}

testing::Message Describe(const GlobalPool& p) {
  return testing::Message() << p.rows << "x" << p.positions << "x" << p.channels;
}

TEST_P(DeviceConformanceTest, PoolsAllPositions) {
  for (const GlobalPool& p : GlobalPools()) {
    SCOPED_TRACE(Describe(p));
    const Floats x = Random(p.in_size(), 110);
    const Output y = Garbage(p.out_size());
    device_->GlobalAveragePool(p.rows, p.positions, p.channels, *Input(x), y.get());
    ExpectNear(y,
               reference::GlobalAveragePool(p.positions, p.channels, Doubles(x.begin(), x.end())),
               1e-6);
  }
}

TEST_P(DeviceConformanceTest, SpreadsTheGradientOverAllPositions) {
  for (const GlobalPool& p : GlobalPools()) {
    SCOPED_TRACE(Describe(p));
    const Floats dy = Random(p.out_size(), 111);
    const Output dx = Garbage(p.in_size());
    device_->GlobalAveragePoolBackward(p.rows, p.positions, p.channels, *Input(dy), dx.get());
    ExpectNear(dx, reference::GlobalAveragePoolBackward(p.positions, p.channels, dy), 1e-7);
  }
}

TEST_P(DeviceConformanceTest, TheGradientOfAGlobalPoolIsItsSlope) {
  const GlobalPool p{2, 7, 5};
  const Floats x = Random(p.in_size(), 112), weights = Random(p.out_size(), 113);
  const auto loss = [&](const Doubles& inputs) {
    const Doubles y = reference::GlobalAveragePool(p.positions, p.channels, inputs);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  const Output dx = Garbage(p.in_size());
  device_->GlobalAveragePoolBackward(p.rows, p.positions, p.channels, *Input(weights), dx.get());
  ExpectNear(dx, reference::FiniteDifferences(loss, Doubles(x.begin(), x.end())), 1e-6);
}

TEST_P(DeviceConformanceTest, AGlobalPoolKeepsNotANumberInItsChannel) {
  const GlobalPool p{2, 40, 6};
  Floats x = Random(p.in_size(), 114);
  x[(40 + 33) * 6 + 2] = kNan;
  const Output y = Garbage(p.out_size());
  device_->GlobalAveragePool(p.rows, p.positions, p.channels, *Input(x), y.get());
  const Floats means = Read(y);
  for (size_t i = 0; i < means.size(); ++i) EXPECT_EQ(std::isnan(means[i]), i == 6 + 2) << i;
}

TEST_P(DeviceConformanceTest, RepeatsGlobalPoolsBitByBit) {
  const GlobalPool p{5, 100, 37};
  const Memory x = Allocate(p.in_size());
  const Output y = Garbage(p.out_size()), dx = Garbage(p.in_size());
  const Output direct_y = Garbage(p.out_size()), direct_dx = Garbage(p.in_size());
  const auto run = [&](const Output& means, const Output& gradient) {
    device_->GlobalAveragePool(p.rows, p.positions, p.channels, *x, means.get());
    device_->GlobalAveragePoolBackward(p.rows, p.positions, p.channels, *means, gradient.get());
  };
  for (uint64_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    device_->CopyToDevice(Random(p.in_size(), 115 + i), x.get());
    run(direct_y, direct_dx);
    device_->Repeat(13, [&] { run(y, dx); });
    EXPECT_EQ(Read(y), Read(direct_y));
    EXPECT_EQ(Read(dx), Read(direct_dx));
  }
}

}  // namespace
}  // namespace keelson
