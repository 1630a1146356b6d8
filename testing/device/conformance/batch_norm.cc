#include <algorithm>
#include <cmath>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

std::vector<BatchNormGeometry> Geometries() {
  std::vector<BatchNormGeometry> geometries;
  for (int64_t rows : {1, 2, 31, 33, 257}) {
    for (int64_t channels : {1, 4, 5, 33}) geometries.push_back({rows, channels});
  }
  geometries.push_back({3, 130});
  geometries.push_back({32, 32});
  geometries.push_back({1025, 3});
  geometries.push_back({2, 1027, 1e-5f});
  geometries.push_back({5000, 2, 0.1f});
  return geometries;
}

testing::Message Describe(const BatchNormGeometry& g) {
  return testing::Message() << g.rows << "x" << g.channels;
}

// Channels of different means and widths.
reference::Floats ChannelsOf(const BatchNormGeometry& g, reference::Floats random) {
  for (size_t i = 0; i < random.size(); ++i) {
    const size_t c = i % g.channels;
    random[i] = static_cast<float>(c % 5) - 2 + random[i] * (0.5f + static_cast<float>(c % 3));
  }
  return random;
}

// What a small variance makes of rounding errors: 1 / the least deviation.
double Magnification(const BatchNormGeometry& g, const reference::Doubles& variances) {
  const double least = *std::min_element(variances.begin(), variances.end());
  return std::max(1.0, 1.0 / std::sqrt(least * double(g.rows - 1) / double(g.rows) + g.epsilon));
}

TEST_P(DeviceConformanceTest, NormalizesABatch) {
  for (const BatchNormGeometry& g : Geometries()) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.channels;
    const Floats x = ChannelsOf(g, Random(size, 1));
    const Floats gamma = Random(g.channels, 2), beta = Random(g.channels, 3);
    const auto statistics = reference::BatchStatistics(g, x);
    const double tolerance = 2e-6 * Magnification(g, statistics.variance);
    const Output mean = Garbage(g.channels), variance = Garbage(g.channels), y = Garbage(size);
    device_->BatchNorm(g, *Input(x), Input(gamma).get(), Input(beta).get(), mean.get(),
                       variance.get(), y.get());
    ExpectNear(mean, statistics.mean, 2e-6);
    ExpectNear(variance, statistics.variance, 4e-6);
    ExpectNear(y, reference::BatchNorm(g, x, gamma, beta), tolerance);
    const Output mean2 = Garbage(g.channels), variance2 = Garbage(g.channels), y2 = Garbage(size);
    device_->BatchNorm(g, *Input(x), nullptr, nullptr, mean2.get(), variance2.get(), y2.get());
    EXPECT_EQ(Read(mean2), Read(mean));
    EXPECT_EQ(Read(variance2), Read(variance));
    ExpectNear(y2, reference::BatchNorm(g, x, {}, {}), tolerance);
  }
}

TEST_P(DeviceConformanceTest, ComputesTheGradientsOfBatchNorm) {
  for (const BatchNormGeometry& g : Geometries()) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.channels;
    const Floats x = ChannelsOf(g, Random(size, 4)), dy = Random(size, 5);
    const Floats gamma = Random(g.channels, 6);
    const double magnification = Magnification(g, reference::BatchStatistics(g, x).variance);
    const double tolerance = 4e-6 * magnification * magnification;
    const Memory in = Input(x), gradient = Input(dy), scale = Input(gamma);
    const Output mean = Garbage(g.channels), variance = Garbage(g.channels), y = Garbage(size);
    device_->BatchNorm(g, *in, scale.get(), nullptr, mean.get(), variance.get(), y.get());
    const Output dgamma = Garbage(g.channels), dbeta = Garbage(g.channels), dx = Garbage(size);
    device_->BatchNormBackward(g, *in, scale.get(), *mean, *variance, *gradient, dgamma.get(),
                               dbeta.get(), dx.get());
    const auto expected = reference::BatchNormBackward(g, x, gamma, dy);
    const double sums = std::sqrt(static_cast<double>(g.rows));
    ExpectNear(dgamma, expected.dgamma, tolerance * sums);
    ExpectNear(dbeta, expected.dbeta, SumTolerance(g.rows));
    ExpectNear(dx, expected.dx, tolerance);
    // Without gamma, and each gradient alone.
    const Output alone_dx = Garbage(size), alone_dgamma = Garbage(g.channels),
                 alone_dbeta = Garbage(g.channels);
    device_->BatchNormBackward(g, *in, nullptr, *mean, *variance, *gradient, nullptr, nullptr,
                               alone_dx.get());
    device_->BatchNormBackward(g, *in, scale.get(), *mean, *variance, *gradient, alone_dgamma.get(),
                               nullptr, nullptr);
    device_->BatchNormBackward(g, *in, scale.get(), *mean, *variance, *gradient, nullptr,
                               alone_dbeta.get(), nullptr);
    ExpectNear(alone_dx, reference::BatchNormBackward(g, x, {}, dy).dx, tolerance);
    EXPECT_EQ(Read(alone_dgamma), Read(dgamma));
    EXPECT_EQ(Read(alone_dbeta), Read(dbeta));
  }
}

TEST_P(DeviceConformanceTest, NormalizesByGivenStatistics) {
  for (const BatchNormGeometry& g : Geometries()) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.channels;
    const Floats x = ChannelsOf(g, Random(size, 7));
    const Floats gamma = Random(g.channels, 8), beta = Random(g.channels, 9);
    const Floats mean = Random(g.channels, 10);
    Floats variance = Random(g.channels, 11);
    for (float& value : variance) value = value * value;
    const Output y = Garbage(size), plain = Garbage(size);
    device_->BatchNormInference(g, *Input(x), Input(gamma).get(), Input(beta).get(), *Input(mean),
                                *Input(variance), y.get());
    device_->BatchNormInference(g, *Input(x), nullptr, nullptr, *Input(mean), *Input(variance),
                                plain.get());
    ExpectNear(y, reference::BatchNormInference(g, x, gamma, beta, mean, variance), 4e-6);
    ExpectNear(plain, reference::BatchNormInference(g, x, {}, {}, mean, variance), 4e-6);
  }
}

TEST_P(DeviceConformanceTest, ALargeMeanDoesNotHideTheVariance) {
  const BatchNormGeometry g{2000, 5};
  Floats x = Random(g.rows * g.channels, 12);
  for (float& value : x) value += 1000;
  x[0] = 1008;
  const auto statistics = reference::BatchStatistics(g, x);
  const Output mean = Garbage(5), variance = Garbage(5), y = Garbage(g.rows * g.channels);
  device_->BatchNorm(g, *Input(x), nullptr, nullptr, mean.get(), variance.get(), y.get());
  ExpectNear(mean, statistics.mean, 1e-6);
  ExpectNear(variance, statistics.variance, 1e-3);
  ExpectNear(y, reference::BatchNorm(g, x, {}, {}), 1e-3);
}

TEST_P(DeviceConformanceTest, BatchNormKeepsNotANumberInItsChannel) {
  const BatchNormGeometry g{40, 3};
  Floats x = Random(g.rows * g.channels, 13);
  x[37 * 3 + 1] = kNan;
  const Memory in = Input(x), dy = Input(Random(g.rows * g.channels, 14));
  const Output mean = Garbage(3), variance = Garbage(3), y = Garbage(g.rows * g.channels);
  const Output dx = Garbage(g.rows * g.channels);
  device_->BatchNorm(g, *in, nullptr, nullptr, mean.get(), variance.get(), y.get());
  device_->BatchNormBackward(g, *in, nullptr, *mean, *variance, *dy, nullptr, nullptr, dx.get());
  for (const Floats& values : {Read(mean), Read(variance), Read(y), Read(dx)}) {
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i % 3 == 1) << i;
  }
}

}  // namespace
}  // namespace keelson
