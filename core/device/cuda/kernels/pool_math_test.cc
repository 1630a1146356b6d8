#include "core/device/cuda/kernels/pool_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/device/cuda/kernels/window_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using reference::Floats;

std::vector<PoolGeometry> Pools() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},  // the smallest
      {2, 7, 5, 3, 3, 2, 2, 2, 0, 0},  // VALID: the last row and column are not used
      {2, 7, 5, 3, 4, 3, 2, 2, 0, 0},  // SAME: padding at the end
      {1, 9, 8, 2, 5, 4, 3, 2, 1, 0},  // windows overlap
      {1, 9, 9, 2, 2, 2, 2, 5, 0, 0},  // gaps between windows
      {2, 9, 8, 8, 5, 4, 3, 2, 1, 0},  // two packs of channels
  };
}

// Floats where packs may lie.
template <int kPack>
class Packs {
 public:
  explicit Packs(const Floats& values) : packs_(values.size() / kPack) {
    std::memcpy(packs_.data(), values.data(), values.size() * sizeof(float));
  }
  const float* data() const { return packs_[0].lane; }

 private:
  std::vector<Pack<kPack>> packs_;
};

template <int kPack, typename Index>
void ExpectMaxima(const PoolGeometry& g) {
  const auto w = PoolWindowsOf<Index>(g, kPack);
  const Floats in = Random(g.in_size(), 5), gradient = Random(g.out_size(), 6);
  const Packs<kPack> x(in), dy(gradient);
  const Floats y = ElementsOf<kPack>(g.out_size(), [&](int64_t i) {
    return MaxPoolPack<kPack>(w, x.data(), static_cast<Index>(i));
  });
  ExpectNear(y, reference::MaxPool(g, in));
  const Packs<kPack> maxima(y);
  const Floats dx = ElementsOf<kPack>(g.in_size(), [&](int64_t i) {
    return MaxPoolGradient<kPack>(w, x.data(), maxima.data(), dy.data(), static_cast<Index>(i));
  });
  ExpectNear(dx, reference::MaxPoolBackward(g, in, gradient));
}

TEST(PoolMathTest, PoolsMaxima) {
  for (const PoolGeometry& g : Pools()) {
    ExpectMaxima<1, int32_t>(g);
    ExpectMaxima<1, int64_t>(g);
    if (g.channels % 4 == 0) ExpectMaxima<4, int32_t>(g);
  }
}

template <int kPack, typename Index>
void ExpectAverages(const PoolGeometry& g) {
  const auto w = PoolWindowsOf<Index>(g, kPack);
  const Floats in = Random(g.in_size(), 7), gradient = Random(g.out_size(), 8);
  const Packs<kPack> x(in), dy(gradient);
  const Floats y = ElementsOf<kPack>(g.out_size(), [&](int64_t i) {
    return AvgPoolPack<kPack>(w, x.data(), static_cast<Index>(i));
  });
  ExpectNear(y, reference::AvgPool(g, in));
  const Floats dx = ElementsOf<kPack>(g.in_size(), [&](int64_t i) {
    return AvgPoolGradient<kPack>(w, dy.data(), static_cast<Index>(i));
  });
  ExpectNear(dx, reference::AvgPoolBackward(g, gradient));
}

TEST(PoolMathTest, PoolsAverages) {
  for (const PoolGeometry& g : Pools()) {
    ExpectAverages<1, int32_t>(g);
    ExpectAverages<1, int64_t>(g);
    if (g.channels % 4 == 0) ExpectAverages<4, int32_t>(g);
  }
}

TEST(PoolMathTest, MaximaKeepNotANumberVisible) {
  const PoolGeometry g{1, 2, 2, 1, 1, 1, 2, 2, 0, 0};
  const auto w = PoolWindowsOf<int32_t>(g, 1);
  for (size_t place = 0; place < 4; ++place) {
    Floats x = {1, 2, 3, 4};
    x[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(MaxPoolPack<1>(w, x.data(), 0).lane[0])) << place;
  }
}

}  // namespace
}  // namespace keelson::cuda
