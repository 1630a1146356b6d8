#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

// Around the threads of a warp and a block, and what is left to a warp.
std::vector<LayerNormGeometry> LayerNormGeometries() {
  std::vector<LayerNormGeometry> geometries;
  for (int64_t rows : {1, 2, 7, 33, 257}) {
    for (int64_t features : {1, 4, 5, 31, 32, 33}) geometries.push_back({rows, features});
  }
  for (int64_t features : {127, 128, 255, 256, 257, 1023, 1024, 1025, 2051}) {
    geometries.push_back({3, features, 1e-3f});
  }
  geometries.push_back({9, 130});
  geometries.push_back({1025, 3, 0.1f});
  return geometries;
}

testing::Message Describe(const LayerNormGeometry& g) {
  return testing::Message() << g.rows << "x" << g.features;
}

// Rows of different means and widths.
reference::Floats RowsOf(const LayerNormGeometry& g, reference::Floats random) {
  for (size_t i = 0; i < random.size(); ++i) {
    const size_t row = i / g.features;
    random[i] = static_cast<float>(row % 5) - 2 + random[i] * (0.5f + static_cast<float>(row % 3));
  }
  return random;
}

// What a small variance makes of rounding errors: 1 / the least deviation.
double Magnification(const reference::LayerStatistics& statistics) {
  return std::max(1.0, *std::max_element(statistics.inverse_deviation.begin(),
                                         statistics.inverse_deviation.end()));
}

reference::Doubles Widened(const reference::Floats& values) {
  return reference::Doubles(values.begin(), values.end());
}

TEST_P(DeviceConformanceTest, NormalizesLayers) {
  for (const LayerNormGeometry& g : LayerNormGeometries()) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.features;
    const Floats x = RowsOf(g, Random(size, 80));
    const Floats gamma = Random(g.features, 81), beta = Random(g.features, 82);
    const auto statistics = reference::StatisticsOfLayers(g, Widened(x));
    const double magnification = Magnification(statistics);
    const Output mean = Garbage(g.rows), inverse = Garbage(g.rows), y = Garbage(size);
    device_->LayerNorm(g, *Input(x), Input(gamma).get(), Input(beta).get(), mean.get(),
                       inverse.get(), y.get());
    ExpectNear(mean, statistics.mean, 2e-6);
    ExpectNear(inverse, statistics.inverse_deviation, 2e-6);
    ExpectNear(y, reference::LayerNorm(g, Widened(x), gamma, beta), 2e-6 * magnification);
    const Output plain = Garbage(size), scaled = Garbage(size);
    device_->LayerNorm(g, *Input(x), nullptr, nullptr, nullptr, nullptr, plain.get());
    device_->LayerNorm(g, *Input(x), Input(gamma).get(), nullptr, nullptr, nullptr, scaled.get());
    ExpectNear(plain, reference::LayerNorm(g, Widened(x), {}, {}), 2e-6 * magnification);
    ExpectNear(scaled, reference::LayerNorm(g, Widened(x), gamma, {}), 2e-6 * magnification);
  }
}

TEST_P(DeviceConformanceTest, ComputesTheGradientsOfLayerNorm) {
  for (const LayerNormGeometry& g : LayerNormGeometries()) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.features;
    const Floats x = RowsOf(g, Random(size, 83)), dy = Random(size, 84);
    const Floats gamma = Random(g.features, 85);
    const double magnification = Magnification(reference::StatisticsOfLayers(g, Widened(x)));
    const double tolerance = 4e-6 * magnification * magnification;
    const Memory in = Input(x), gradient = Input(dy), scale = Input(gamma);
    const Output mean = Garbage(g.rows), inverse = Garbage(g.rows), y = Garbage(size);
    device_->LayerNorm(g, *in, scale.get(), nullptr, mean.get(), inverse.get(), y.get());
    const Output dgamma = Garbage(g.features), dbeta = Garbage(g.features), dx = Garbage(size);
    device_->LayerNormBackward(g, *in, scale.get(), *mean, *inverse, *gradient, dgamma.get(),
                               dbeta.get(), dx.get());
    const auto expected = reference::LayerNormBackward(g, x, gamma, dy);
    ExpectNear(dgamma, expected.dgamma, tolerance * std::sqrt(static_cast<double>(g.rows)));
    ExpectNear(dbeta, expected.dbeta, SumTolerance(g.rows));
    ExpectNear(dx, expected.dx, tolerance);
    // Without gamma, each gradient alone, and dx in place of dy.
    const Output plain_dx = Garbage(size), alone_dgamma = Garbage(g.features),
                 alone_dbeta = Garbage(g.features), in_place_dgamma = Garbage(g.features),
                 in_place = InOut(dy);
    device_->LayerNormBackward(g, *in, nullptr, *mean, *inverse, *gradient, nullptr, nullptr,
                               plain_dx.get());
    device_->LayerNormBackward(g, *in, scale.get(), *mean, *inverse, *gradient, alone_dgamma.get(),
                               nullptr, nullptr);
    device_->LayerNormBackward(g, *in, scale.get(), *mean, *inverse, *gradient, nullptr,
                               alone_dbeta.get(), nullptr);
    device_->LayerNormBackward(g, *in, scale.get(), *mean, *inverse, *in_place,
                               in_place_dgamma.get(), nullptr, in_place.get());
    ExpectNear(plain_dx, reference::LayerNormBackward(g, x, {}, dy).dx, tolerance);
    EXPECT_EQ(Read(alone_dgamma), Read(dgamma));
    EXPECT_EQ(Read(alone_dbeta), Read(dbeta));
    EXPECT_EQ(Read(in_place_dgamma), Read(dgamma));
    EXPECT_EQ(Read(in_place), Read(dx));
  }
}

TEST_P(DeviceConformanceTest, TheGradientsOfLayerNormAreItsSlopes) {
  for (const LayerNormGeometry& g : {LayerNormGeometry{3, 5}, {2, 33, 1e-3f}, {4, 10}}) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.features;
    const Floats x = RowsOf(g, Random(size, 86)), dy = Random(size, 87);
    const Floats gamma = Random(g.features, 88), beta = Random(g.features, 89);
    const auto loss = [&](const Doubles& inputs, const Doubles& scale, const Doubles& shift) {
      const Doubles normalized = reference::LayerNorm(g, inputs, {}, {});
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        sum += dy[i] * (scale[i % g.features] * normalized[i] + shift[i % g.features]);
      }
      return sum;
    };
    const Memory in = Input(x), scale = Input(gamma);
    const Output mean = Garbage(g.rows), inverse = Garbage(g.rows), y = Garbage(size);
    const Output dgamma = Garbage(g.features), dbeta = Garbage(g.features), dx = Garbage(size);
    device_->LayerNorm(g, *in, scale.get(), Input(beta).get(), mean.get(), inverse.get(), y.get());
    device_->LayerNormBackward(g, *in, scale.get(), *mean, *inverse, *Input(dy), dgamma.get(),
                               dbeta.get(), dx.get());
    const Doubles at = Widened(x), scales = Widened(gamma), shifts = Widened(beta);
    const auto of_x = [&](const Doubles& v) { return loss(v, scales, shifts); };
    const auto of_gamma = [&](const Doubles& v) { return loss(at, v, shifts); };
    const auto of_beta = [&](const Doubles& v) { return loss(at, scales, v); };
    ExpectNear(dx, reference::FiniteDifferences(of_x, at), 1e-5);
    ExpectNear(dgamma, reference::FiniteDifferences(of_gamma, scales), 1e-5);
    ExpectNear(dbeta, reference::FiniteDifferences(of_beta, shifts), 1e-5);
  }
}

TEST_P(DeviceConformanceTest, ALargeMeanDoesNotHideTheVarianceOfALayer) {
  for (int64_t features : {40, 1500}) {
    SCOPED_TRACE(features);
    const LayerNormGeometry g{3, features};
    Floats x = Random(g.rows * g.features, 90);
    for (float& value : x) value += 1000;
    x[0] = 1008;
    const Output mean = Garbage(3), inverse = Garbage(3), y = Garbage(g.rows * g.features);
    device_->LayerNorm(g, *Input(x), nullptr, nullptr, mean.get(), inverse.get(), y.get());
    const auto statistics = reference::StatisticsOfLayers(g, Widened(x));
    ExpectNear(mean, statistics.mean, 1e-6);
    ExpectNear(inverse, statistics.inverse_deviation, 1e-4);
    ExpectNear(y, reference::LayerNorm(g, Widened(x), {}, {}), 1e-3);
  }
}

TEST_P(DeviceConformanceTest, LayersOfEqualElementsBecomeZeros) {
  const LayerNormGeometry g{2, 37};
  Floats x(g.rows * g.features, 0.1f);
  std::fill_n(x.begin(), g.features, -7.3f);
  const Output mean = Garbage(2), inverse = Garbage(2), y = Garbage(g.rows * g.features);
  device_->LayerNorm(g, *Input(x), nullptr, nullptr, mean.get(), inverse.get(), y.get());
  ExpectNear(y, Doubles(x.size(), 0.0), 2e-4);
  ExpectNear(inverse, Doubles(2, 1 / std::sqrt(double{g.epsilon})), 1e-5);
}

TEST_P(DeviceConformanceTest, LayerNormKeepsNotANumberInItsRow) {
  for (int64_t features : {5, 40, 1100}) {
    SCOPED_TRACE(features);
    const LayerNormGeometry g{3, features};
    Floats x = Random(g.rows * g.features, 91);
    const Memory dy = Input(x);
    x[features + 3] = kNan;
    const Memory in = Input(x);
    const Output mean = Garbage(3), inverse = Garbage(3), y = Garbage(g.rows * g.features);
    const Output dx = Garbage(g.rows * g.features);
    device_->LayerNorm(g, *in, nullptr, nullptr, mean.get(), inverse.get(), y.get());
    device_->LayerNormBackward(g, *in, nullptr, *mean, *inverse, *dy, nullptr, nullptr, dx.get());
    for (const Floats& values : {Read(y), Read(dx)}) {
      for (int64_t i = 0; i < 3 * features; ++i) {
        ASSERT_EQ(std::isnan(values[i]), i / features == 1) << i;
      }
    }
    for (const Floats& values : {Read(mean), Read(inverse)}) {
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(values[i]), i == 1) << i;
    }
  }
}

TEST_P(DeviceConformanceTest, LayerNormOfNoRows) {
  const LayerNormGeometry g{0, 5};
  const Memory nothing = Input({}), scale = Input(Random(5, 92));
  const Output none = Garbage(0), dgamma = Garbage(5), dbeta = Garbage(5);
  device_->LayerNorm(g, *nothing, scale.get(), nullptr, none.get(), none.get(), none.get());
  device_->LayerNormBackward(g, *nothing, scale.get(), *nothing, *nothing, *nothing, dgamma.get(),
                             dbeta.get(), none.get());
  EXPECT_EQ(Read(dgamma), Floats(5, 0.0f));
  EXPECT_EQ(Read(dbeta), Floats(5, 0.0f));
}

TEST_P(DeviceConformanceTest, RepeatsLayerNormBitByBit) {
  for (const LayerNormGeometry& g : {LayerNormGeometry{300, 37}, {3, 1100}}) {
    SCOPED_TRACE(Describe(g));
    const int64_t size = g.rows * g.features;
    const Memory x = Allocate(size), gamma = Exact(Random(g.features, 93));
    const Memory mean = Allocate(g.rows), inverse = Allocate(g.rows);
    struct Results {
      Output y, dgamma, dbeta, dx;
    };
    const Results direct{Garbage(size), Garbage(g.features), Garbage(g.features), Garbage(size)};
    const Results repeated{Garbage(size), Garbage(g.features), Garbage(g.features), Garbage(size)};
    const auto run = [&](const Results& to) {
      device_->LayerNorm(g, *x, gamma.get(), gamma.get(), mean.get(), inverse.get(), to.y.get());
      device_->LayerNormBackward(g, *x, gamma.get(), *mean, *inverse, *to.y, to.dgamma.get(),
                                 to.dbeta.get(), to.dx.get());
    };
    for (uint64_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      device_->CopyToDevice(Random(size, 94 + i), x.get());
      run(direct);
      device_->Repeat(static_cast<uint64_t>(g.rows), [&] { run(repeated); });
      EXPECT_EQ(Read(repeated.y), Read(direct.y));
      EXPECT_EQ(Read(repeated.dgamma), Read(direct.dgamma));
      EXPECT_EQ(Read(repeated.dbeta), Read(direct.dbeta));
      EXPECT_EQ(Read(repeated.dx), Read(direct.dx));
    }
  }
}

}  // namespace
}  // namespace keelson
