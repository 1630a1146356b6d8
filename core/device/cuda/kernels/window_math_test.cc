#include "core/device/cuda/kernels/window_math.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/device/cuda/kernels/window_testing.h"
#include "testing/device/reference_operations.h"

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
      {2, 5, 4, 4, 5, 4, 2, 3, 1, 1, 1},    // a pack of channels
  };
}

MatMulArgs Product(int64_t m, int64_t n, int64_t k) {
  MatMulArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  return args;
}

template <typename Index>
void ExpectInverseRanges(int64_t size, int64_t stride, int64_t pad) {
  constexpr Index kIn = 11, kOut = 3;
  const Divisor<Index> by(stride);
  const auto window = static_cast<Index>(size), before = static_cast<Index>(pad);
  for (Index in = 0; in < kIn; ++in) {
    const AxisRange<Index> outputs = OutputsOf(in, window, by, before, kOut);
    for (Index out = 0; out < kOut; ++out) {
      const AxisRange<Index> inputs = InputsOf(out, window, by, before, kIn);
      EXPECT_EQ(inputs.begin <= in && in < inputs.end, outputs.begin <= out && out < outputs.end)
          << "size " << size << " stride " << stride << " pad " << pad << " input " << in
          << " output " << out;
    }
  }
}

TEST(WindowMathTest, RangesAreEachOthersInverse) {
  for (int64_t size : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 4}) {
      for (int64_t pad = 0; pad < size; ++pad) {
        ExpectInverseRanges<int32_t>(size, stride, pad);
        ExpectInverseRanges<int64_t>(size, stride, pad);
      }
    }
  }
}

TEST(WindowMathTest, PlacesAndOffsetsAreEachOthersInverse) {
  const Plane<int32_t> plane = {Divisor<int32_t>(3), Divisor<int32_t>(5), Divisor<int32_t>(7)};
  for (int32_t i = 0; i < 2 * 3 * 5 * 7; ++i) {
    const Place<int32_t> place = PlaceOf(plane, i);
    EXPECT_LT(place.row, 3);
    EXPECT_LT(place.column, 5);
    EXPECT_LT(place.pack, 7);
    EXPECT_EQ(OffsetOf<1>(plane, place), i);
    EXPECT_EQ(OffsetOf<4>(plane, place), 4 * i);
  }
}

template <typename Index>
void ExpectAdvanceIsTheNextPlace(const ConvGeometry& g) {
  const auto windows = ColumnWindowsOf<Index>(g, 1);
  const auto n = static_cast<Index>(g.batch * g.out_height * g.out_width * g.kernel * g.kernel *
                                    g.in_channels);
  ColumnPlace<Index> place = ColumnPlaceOf(windows, Index{0});
  for (Index i = 1; i < n; ++i) {
    Advance(windows, &place);
    const ColumnPlace<Index> expected = ColumnPlaceOf(windows, i);
    for (auto [a, b] : {std::pair{place.out, expected.out}, {place.tap, expected.tap}}) {
      ASSERT_EQ(a.image, b.image) << i;
      ASSERT_EQ(a.row, b.row) << i;
      ASSERT_EQ(a.column, b.column) << i;
      ASSERT_EQ(a.pack, b.pack) << i;
    }
  }
}

TEST(WindowMathTest, AdvancesToTheNextPlace) {
  for (const ConvGeometry& g : Convolutions()) {
    ExpectAdvanceIsTheNextPlace<int32_t>(g);
    ExpectAdvanceIsTheNextPlace<int64_t>(g);
  }
}

template <int kPack, typename Index>
void ExpectColumns(const ConvGeometry& g) {
  const Floats x = Random(g.in_size(), 1), filter = Random(g.filter_size(), 2);
  const int64_t pixels = g.batch * g.out_height * g.out_width;
  const int64_t window = g.kernel * g.kernel * g.in_channels;
  const auto windows = ColumnWindowsOf<Index>(g, kPack);
  // Packs of floats are aligned.
  std::vector<Pack<kPack>> image(x.size() / kPack);
  std::memcpy(image.data(), x.data(), x.size() * sizeof(float));
  const Floats columns = ElementsOf<kPack>(pixels * window, [&](int64_t i) {
    return ColumnsPack<kPack>(windows, image[0].lane,
                              ColumnPlaceOf(windows, static_cast<Index>(i)));
  });
  const Doubles product =
      reference::MatMul(Product(pixels, g.out_channels, window), columns, filter, {});
  EXPECT_EQ(product, reference::Conv2D(g, x, filter));
}

TEST(WindowMathTest, ColumnsTimesFilterIsTheConvolution) {
  for (const ConvGeometry& g : Convolutions()) {
    ExpectColumns<1, int32_t>(g);
    ExpectColumns<1, int64_t>(g);
    if (g.in_channels % 4 == 0) ExpectColumns<4, int32_t>(g);
  }
}

template <int kPack, typename Index>
void ExpectGradient(const ConvGeometry& g) {
  const Floats filter = Random(g.filter_size(), 3), dy = Random(g.out_size(), 4);
  MatMulArgs args = Product(g.batch * g.out_height * g.out_width,
                            g.kernel * g.kernel * g.in_channels, g.out_channels);
  args.transpose_b = true;
  const Doubles product = reference::MatMul(args, dy, filter, {});
  std::vector<Pack<kPack>> dcolumns(product.size() / kPack);
  for (size_t i = 0; i < product.size(); ++i) {
    dcolumns[i / kPack].lane[i % kPack] = static_cast<float>(product[i]);
  }
  const auto windows = ColumnWindowsOf<Index>(g, kPack);
  const Floats dx = ElementsOf<kPack>(g.in_size(), [&](int64_t i) {
    return ColumnsGradient<kPack>(windows, dcolumns[0].lane, static_cast<Index>(i));
  });
  ExpectNear(dx, reference::Conv2DBackwardData(g, filter, dy));
}

TEST(WindowMathTest, GatheredColumnsAreTheConvolutionsGradient) {
  for (const ConvGeometry& g : Convolutions()) {
    ExpectGradient<1, int32_t>(g);
    ExpectGradient<1, int64_t>(g);
    if (g.in_channels % 4 == 0) ExpectGradient<4, int32_t>(g);
  }
}

}  // namespace
}  // namespace keelson::cuda
