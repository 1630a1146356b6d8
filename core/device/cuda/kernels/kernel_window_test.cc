#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_math.h"
#include "testing/device/kernel_testing.h"
#include "testing/device/reference_operations.h"

namespace keelson::cuda {
namespace {

using KernelWindowTest = KernelTest;
using reference::Doubles;
using reference::Floats;

std::vector<ConvGeometry> Convolutions() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},      // the smallest
      {2, 6, 5, 3, 4, 3, 4, 3, 1, 0, 0},      // VALID
      {2, 7, 10, 2, 4, 5, 3, 3, 2, 1, 0},     // SAME, the axes differ
      {1, 6, 6, 3, 6, 6, 2, 4, 1, 1, 1},      // more padding at the end
      {1, 11, 11, 2, 2, 2, 3, 2, 6, 0, 0},    // stride beyond the kernel
      {3, 9, 8, 4, 9, 8, 2, 3, 1, 1, 1},      // packs of channels
      {2, 5, 5, 8, 3, 3, 2, 3, 2, 1, 1},      // two packs
      {1, 28, 28, 1, 28, 28, 1, 5, 1, 2, 2},  // more than one block
  };
}

std::vector<PoolGeometry> Pools() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},     // the smallest
      {2, 7, 5, 3, 3, 2, 2, 2, 0, 0},     // VALID: the last row and column are not used
      {2, 7, 5, 3, 4, 3, 2, 2, 0, 0},     // SAME: padding at the end
      {1, 9, 8, 2, 5, 4, 3, 2, 1, 0},     // windows overlap
      {1, 9, 9, 2, 2, 2, 2, 5, 0, 0},     // gaps between windows
      {2, 9, 8, 4, 5, 4, 3, 2, 1, 0},     // packs of channels
      {1, 14, 14, 12, 7, 7, 2, 2, 0, 0},  // more than one block
  };
}

// Returns few different values, so that windows have equal maxima.
Floats FewValues(int64_t n, uint64_t seed) {
  Floats values = RandomFloats(n, seed);
  for (float& value : values) value = std::floor(4 * value);
  return values;
}

int64_t Pixels(const ConvGeometry& g) { return g.batch * g.out_height * g.out_width; }
int64_t WindowSize(const ConvGeometry& g) { return g.kernel * g.kernel * g.in_channels; }

MatMulArgs Product(int64_t m, int64_t n, int64_t k) {
  MatMulArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  return args;
}

TEST_F(KernelWindowTest, ColumnsTimesFilterIsTheConvolution) {
  for (const ConvGeometry& g : Convolutions()) {
    const Floats image = FewValues(g.in_size(), 1), filter = FewValues(g.filter_size(), 2);
    const Doubles expected = reference::Conv2D(g, image, filter);
    const int64_t n = Pixels(g) * WindowSize(g);
    const MatMulArgs args = Product(Pixels(g), g.out_channels, WindowSize(g));
    for (size_t offset : {0, 1}) {
      GpuArray<float> x(image, offset), columns(Poison(n));
      ASSERT_EQ(LaunchImageToColumns(nullptr, g, x.data(), columns.data()), cudaSuccess);
      EXPECT_EQ(reference::MatMul(args, columns.Read(), filter, {}), expected);
      // Small whole numbers are the same in bfloat16.
      GpuArray<uint16_t> shorts(std::vector<uint16_t>(n, 0xffff));
      ASSERT_EQ(LaunchImageToBfloat16Columns(nullptr, g, x.data(), shorts.data()), cudaSuccess);
      Floats decoded;
      for (uint16_t code : shorts.Read()) decoded.push_back(FromBfloat16(code));
      EXPECT_EQ(reference::MatMul(args, decoded, filter, {}), expected);
    }
  }
}

TEST_F(KernelWindowTest, Bfloat16ColumnsAreRounded) {
  const ConvGeometry g{1, 4, 4, 4, 4, 4, 1, 1, 1, 0, 0};
  const Floats image = RandomFloats(g.in_size(), 3);
  GpuArray<float> x(image);
  GpuArray<uint16_t> columns(std::vector<uint16_t>(image.size(), 0xffff));
  ASSERT_EQ(LaunchImageToBfloat16Columns(nullptr, g, x.data(), columns.data()), cudaSuccess);
  const auto codes = columns.Read();
  for (size_t i = 0; i < image.size(); ++i) EXPECT_EQ(codes[i], ToBfloat16(image[i]));
}

TEST_F(KernelWindowTest, GatheredColumnsAreTheConvolutionsGradient) {
  for (const ConvGeometry& g : Convolutions()) {
    const Floats filter = FewValues(g.filter_size(), 3), dy = FewValues(g.out_size(), 4);
    MatMulArgs args = Product(Pixels(g), WindowSize(g), g.out_channels);
    args.transpose_b = true;
    const Doubles product = reference::MatMul(args, dy, filter, {});
    const Doubles expected = reference::Conv2DBackwardData(g, filter, dy);
    for (size_t offset : {0, 1}) {
      GpuArray<float> dcolumns(Floats(product.begin(), product.end()), offset),
          dx(Poison(g.in_size()), offset);
      ASSERT_EQ(LaunchColumnsToImage(nullptr, g, dcolumns.data(), dx.data()), cudaSuccess);
      ExpectClose(dx.Read(), expected);
    }
  }
}

TEST_F(KernelWindowTest, Pools) {
  for (const PoolGeometry& g : Pools()) {
    const Floats in = FewValues(g.in_size(), 5), gradient = FewValues(g.out_size(), 6);
    for (size_t offset : {0, 1}) {
      GpuArray<float> x(in, offset), dy(gradient, offset), y(Poison(g.out_size()), offset),
          dx(Poison(g.in_size()), offset);
      ASSERT_EQ(LaunchMaxPool(nullptr, g, x.data(), y.data()), cudaSuccess);
      ExpectClose(y.Read(), reference::MaxPool(g, in));
      ASSERT_EQ(LaunchMaxPoolBackward(nullptr, g, x.data(), y.data(), dy.data(), dx.data()),
                cudaSuccess);
      ExpectClose(dx.Read(), reference::MaxPoolBackward(g, in, gradient));
      ASSERT_EQ(LaunchAvgPool(nullptr, g, x.data(), y.data()), cudaSuccess);
      ExpectClose(y.Read(), reference::AvgPool(g, in));
      ASSERT_EQ(LaunchAvgPoolBackward(nullptr, g, dy.data(), dx.data()), cudaSuccess);
      ExpectClose(dx.Read(), reference::AvgPoolBackward(g, gradient));
    }
  }
}

TEST_F(KernelWindowTest, RefusesColumnsThatAreNotAligned) {
  const ConvGeometry g{1, 2, 2, 1, 2, 2, 1, 1, 1, 0, 0};
  GpuArray<float> x(Floats(4, 1.0f)), columns(Poison(8));
  EXPECT_EQ(LaunchImageToColumns(nullptr, g, x.data(), columns.data() + 1), cudaErrorInvalidValue);
}

TEST_F(KernelWindowTest, LaunchesNothingForNoImages) {
  ConvGeometry g{0, 2, 2, 1, 2, 2, 1, 1, 1, 0, 0};
  PoolGeometry pool{0, 2, 2, 1, 1, 1, 2, 2, 0, 0};
  EXPECT_EQ(LaunchImageToColumns(nullptr, g, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchImageToBfloat16Columns(nullptr, g, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchColumnsToImage(nullptr, g, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchMaxPool(nullptr, pool, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchAvgPoolBackward(nullptr, pool, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(cuda_emulation::CurrentStatistics().kernel_launches, 0);
}

}  // namespace
}  // namespace keelson::cuda
