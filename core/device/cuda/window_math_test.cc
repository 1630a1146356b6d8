#include "core/device/cuda/window_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using reference::Doubles;
using reference::Floats;

std::vector<ConvGeometry> Convolutions() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},    // the smallest
      {2, 6, 5, 3, 4, 3, 4, 3, 1, 0, 0},    // VALID
      {2, 7, 10, 2, 4, 5, 3, 3, 2, 1, 0},   // SAME, the axes differ
      {1, 6, 6, 3, 6, 6, 2, 4, 1, 1, 1},    // more padding at the end
      {1, 11, 11, 2, 2, 2, 3, 2, 6, 0, 0},  // stride beyond the kernel
  };
}

std::vector<PoolGeometry> Pools() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},  // the smallest
      {2, 7, 5, 3, 3, 2, 2, 2, 0, 0},  // VALID: the last row and column are not used
      {2, 7, 5, 3, 4, 3, 2, 2, 0, 0},  // SAME: padding at the end
      {1, 9, 8, 2, 5, 4, 3, 2, 1, 0},  // windows overlap
      {1, 9, 9, 2, 2, 2, 2, 5, 0, 0},  // gaps between windows
  };
}

// Of few values, so that windows have equal maxima.
Floats Random(int64_t n, uint64_t seed) {
  Floats values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(std::floor(8 * UniformFloat(Philox(seed, 0, static_cast<uint64_t>(i))[0])));
  }
  return values;
}

void ExpectNear(const Floats& actual, const Doubles& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

template <typename F>
Floats ForEach(int64_t n, F f) {
  Floats values;
  for (int64_t i = 0; i < n; ++i) values.push_back(f(i));
  return values;
}

MatMulArgs Product(int64_t m, int64_t n, int64_t k) {
  MatMulArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  return args;
}

TEST(WindowMathTest, RangesAreEachOthersInverse) {
  for (int64_t size : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 4}) {
      for (int64_t pad = 0; pad < size; ++pad) {
        constexpr int64_t kIn = 11, kOut = 3;
        for (int64_t in = 0; in < kIn; ++in) {
          const AxisRange outputs = OutputsOf(in, size, stride, pad, kOut);
          for (int64_t out = 0; out < kOut; ++out) {
            const AxisRange inputs = InputsOf(out, size, stride, pad, kIn);
            EXPECT_EQ(inputs.begin <= in && in < inputs.end,
                      outputs.begin <= out && out < outputs.end)
                << "size " << size << " stride " << stride << " pad " << pad << " input " << in
                << " output " << out;
          }
        }
      }
    }
  }
}

TEST(WindowMathTest, PlacesAndIndicesAreEachOthersInverse) {
  for (int64_t i = 0; i < 2 * 3 * 5 * 7; ++i) {
    const Place place = PlaceOf(i, 3, 5, 7);
    EXPECT_LT(place.row, 3);
    EXPECT_LT(place.column, 5);
    EXPECT_LT(place.channel, 7);
    EXPECT_EQ(IndexOf(place, 3, 5, 7), i);
  }
}

TEST(WindowMathTest, ColumnsTimesFilterIsTheConvolution) {
  for (const ConvGeometry& g : Convolutions()) {
    const Floats x = Random(g.in_size(), 1), filter = Random(g.filter_size(), 2);
    const int64_t pixels = g.batch * g.out_height * g.out_width;
    const int64_t window = g.kernel * g.kernel * g.in_channels;
    const Floats columns =
        ForEach(pixels * window, [&](int64_t i) { return ColumnsElement(g, x.data(), i); });
    const Doubles product =
        reference::MatMul(Product(pixels, g.out_channels, window), columns, filter, {});
    EXPECT_EQ(product, reference::Conv2D(g, x, filter));
  }
}

TEST(WindowMathTest, GatheredColumnsAreTheConvolutionsGradient) {
  for (const ConvGeometry& g : Convolutions()) {
    const Floats filter = Random(g.filter_size(), 3), dy = Random(g.out_size(), 4);
    MatMulArgs args = Product(g.batch * g.out_height * g.out_width,
                              g.kernel * g.kernel * g.in_channels, g.out_channels);
    args.transpose_b = true;
    const Doubles product = reference::MatMul(args, dy, filter, {});
    const Floats dcolumns(product.begin(), product.end());
    const Floats dx =
        ForEach(g.in_size(), [&](int64_t i) { return ColumnsGradient(g, dcolumns.data(), i); });
    ExpectNear(dx, reference::Conv2DBackwardData(g, filter, dy));
  }
}

TEST(WindowMathTest, PoolsMaxima) {
  for (const PoolGeometry& g : Pools()) {
    const Floats x = Random(g.in_size(), 5), dy = Random(g.out_size(), 6);
    const Floats y =
        ForEach(g.out_size(), [&](int64_t i) { return MaxPoolElement(g, x.data(), i); });
    ExpectNear(y, reference::MaxPool(g, x));
    const Floats dx = ForEach(g.in_size(), [&](int64_t i) {
      return MaxPoolGradient(g, x.data(), y.data(), dy.data(), i);
    });
    ExpectNear(dx, reference::MaxPoolBackward(g, x, dy));
  }
}

TEST(WindowMathTest, PoolsAverages) {
  for (const PoolGeometry& g : Pools()) {
    const Floats x = Random(g.in_size(), 7), dy = Random(g.out_size(), 8);
    ExpectNear(ForEach(g.out_size(), [&](int64_t i) { return AvgPoolElement(g, x.data(), i); }),
               reference::AvgPool(g, x));
    ExpectNear(ForEach(g.in_size(), [&](int64_t i) { return AvgPoolGradient(g, dy.data(), i); }),
               reference::AvgPoolBackward(g, dy));
  }
}

TEST(WindowMathTest, MaximaKeepNotANumberVisible) {
  const PoolGeometry g{1, 2, 2, 1, 1, 1, 2, 2, 0, 0};
  for (size_t place = 0; place < 4; ++place) {
    Floats x = {1, 2, 3, 4};
    x[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(MaxPoolElement(g, x.data(), 0))) << place;
  }
}

}  // namespace
}  // namespace keelson::cuda
