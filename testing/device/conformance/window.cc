#include <optional>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

std::vector<ConvGeometry> ConvGeometries() {
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

std::vector<PoolGeometry> PoolGeometries() {
  // batch, in height, width, channels, out height, width, size, stride, pad top, left
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},       // the smallest
      {3, 24, 24, 32, 12, 12, 2, 2, 0, 0},  // LeNet's
      {2, 7, 5, 3, 3, 2, 2, 2, 0, 0},       // VALID: the last row and column are not used
      {2, 7, 5, 3, 4, 3, 2, 2, 0, 0},       // SAME: padding at the end
      {2, 9, 8, 17, 5, 4, 3, 2, 1, 0},      // windows overlap
      {2, 9, 8, 20, 5, 4, 3, 2, 1, 0},      // and the channels are whole vectors
      {5, 6, 7, 5, 6, 7, 3, 1, 1, 1},       // SAME, stride 1
      {1, 9, 9, 2, 2, 2, 2, 5, 0, 0},       // gaps between windows
  };
}

testing::Message Describe(const ConvGeometry& g) {
  return testing::Message() << g.batch << "x" << g.in_height << "x" << g.in_width << "x"
                            << g.in_channels << " kernel " << g.kernel << " stride " << g.stride;
}

TEST_P(DeviceConformanceTest, Convolves) {
  for (const ConvGeometry& g : ConvGeometries()) {
    SCOPED_TRACE(Describe(g));
    const Floats x = Random(g.in_size(), 8), filter = Random(g.filter_size(), 9);
    const Floats dy = Random(g.out_size(), 10);
    const Output y = Garbage(g.out_size()), dx = Garbage(g.in_size());
    const Output dfilter = Garbage(g.filter_size());
    device_->Conv2D(g, *Input(x), *Input(filter), {}, y.get());
    device_->Conv2DBackwardData(g, *Input(filter), *Input(dy), dx.get());
    device_->Conv2DBackwardFilter(g, *Input(x), *Input(dy), dfilter.get());
    const int64_t window = g.kernel * g.kernel;
    ExpectNear(y, reference::Conv2D(g, x, filter), ProductTolerance(window * g.in_channels));
    ExpectNear(dx, reference::Conv2DBackwardData(g, filter, dy),
               ProductTolerance(window * g.out_channels));
    ExpectNear(dfilter, reference::Conv2DBackwardFilter(g, x, dy),
               ProductTolerance(g.batch * g.out_height * g.out_width));
  }
}

TEST_P(DeviceConformanceTest, AddsTheBiasAndActivatesAConvolution) {
  for (const ConvGeometry& g : {ConvGeometry{2, 5, 7, 3, 5, 7, 4, 1, 1, 0, 0},
                                ConvGeometry{3, 9, 7, 3, 9, 7, 5, 3, 1, 1, 1},
                                ConvGeometry{2, 8, 8, 2, 4, 4, 32, 3, 2, 0, 0}}) {
    const Floats x = Random(g.in_size(), 8), filter = Random(g.filter_size(), 9);
    const Floats bias = Random(g.out_channels, 11);
    for (const bool biased : {false, true}) {
      for (const std::optional<ActivationKind> activation :
           {std::optional<ActivationKind>(), std::optional(ActivationKind::kRelu),
            std::optional(ActivationKind::kTanh), std::optional(ActivationKind::kSigmoid)}) {
        SCOPED_TRACE(Describe(g) << " bias " << biased << " activation "
                                 << (activation ? static_cast<int>(*activation) : -1));
        Doubles expected = reference::Conv2D(g, x, filter);
        for (size_t i = 0; i < expected.size(); ++i) {
          if (biased) expected[i] += bias[i % bias.size()];
          if (activation) expected[i] = reference::Activate(*activation, expected[i]);
        }
        const Output y = Garbage(g.out_size());
        const Memory bias_memory = Input(bias);
        device_->Conv2D(g, *Input(x), *Input(filter),
                        {biased ? bias_memory.get() : nullptr, activation}, y.get());
        ExpectNear(y, expected, ProductTolerance(g.kernel * g.kernel * g.in_channels));
      }
    }
  }
}

TEST_P(DeviceConformanceTest, AConvolutionKeepsNotANumberVisible) {
  const ConvGeometry g{1, 2, 2, 1, 2, 2, 2, 1, 1, 0, 0};
  const Memory bias = Input({0, 0});
  const Output y = Garbage(8);
  device_->Conv2D(g, *Input({1, kNan, 3, 4}), *Input({1, -1}), {bias.get(), ActivationKind::kRelu},
                  y.get());
  ExpectNear(y, {1, 0, kNan, kNan, 3, 0, 4, 0}, ProductTolerance(1));
}

// A batch that a device may have to convolve piece by piece.
TEST_P(DeviceConformanceTest, ConvolvesALargeBatch) {
  const ConvGeometry g{300, 28, 28, 1, 24, 24, 2, 5, 1, 0, 0};
  const Memory ones = Exact(Floats(g.out_size(), 1.0f));
  const Output y = Garbage(g.out_size()), dfilter = Garbage(g.filter_size());
  const Output dx = Garbage(g.in_size());
  device_->Conv2D(g, *ones, *ones, {}, y.get());
  device_->Conv2DBackwardFilter(g, *ones, *ones, dfilter.get());
  device_->Conv2DBackwardData(g, *ones, *ones, dx.get());
  EXPECT_EQ(Read(y), Floats(g.out_size(), 25.0f));
  EXPECT_EQ(Read(dfilter), Floats(g.filter_size(), 300.0f * 24 * 24));
  // The corner pixel of each image is in one window, a pixel of its middle in 25.
  const Floats gradient = Read(dx);
  for (size_t image = 0; image < 300; ++image) {
    ASSERT_EQ(gradient[image * 784], 2) << image;
    ASSERT_EQ(gradient[image * 784 + 14 * 28 + 14], 2 * 25) << image;
  }
}

TEST_P(DeviceConformanceTest, Pools) {
  for (const PoolGeometry& g : PoolGeometries()) {
    SCOPED_TRACE(testing::Message() << g.in_height << "x" << g.in_width << "x" << g.channels
                                    << " size " << g.size << " stride " << g.stride);
    const Floats x = Random(g.in_size(), 11), dy = Random(g.out_size(), 12);
    const Memory in = Input(x), gradient = Input(dy);
    const Output max = Garbage(g.out_size()), max_dx = Garbage(g.in_size());
    device_->MaxPool(g, *in, max.get());
    device_->MaxPoolBackward(g, *in, *max, *gradient, max_dx.get());
    const Output avg = Garbage(g.out_size()), avg_dx = Garbage(g.in_size());
    device_->AvgPool(g, *in, avg.get());
    device_->AvgPoolBackward(g, *gradient, avg_dx.get());
    ExpectNear(max, reference::MaxPool(g, x), 0);
    ExpectNear(max_dx, reference::MaxPoolBackward(g, x, dy));
    ExpectNear(avg, reference::AvgPool(g, x));
    ExpectNear(avg_dx, reference::AvgPoolBackward(g, dy));
  }
}

TEST_P(DeviceConformanceTest, OfEqualMaximaTheFirstTakesTheGradient) {
  const PoolGeometry g{1, 2, 4, 1, 1, 2, 2, 2, 0, 0};
  const Memory x = Input({0, 0, -1, 5, 0, 0, 5, 5});
  const Output y = Garbage(2), dx = Garbage(8);
  device_->MaxPool(g, *x, y.get());
  device_->MaxPoolBackward(g, *x, *y, *Input({1, 2}), dx.get());
  EXPECT_EQ(Read(y), Floats({0, 5}));
  EXPECT_EQ(Read(dx), Floats({1, 0, 0, 2, 0, 0, 0, 0}));
}

TEST_P(DeviceConformanceTest, PoolsKeepNotANumberVisible) {
  const PoolGeometry g{1, 2, 2, 4, 1, 1, 2, 2, 0, 0};
  // Channel c has the not-a-number in pixel c.
  Floats x(16, 1.0f);
  for (size_t c = 0; c < 4; ++c) x[c * 4 + c] = kNan;
  const Output max = Garbage(4), avg = Garbage(4);
  device_->MaxPool(g, *Input(x), max.get());
  device_->AvgPool(g, *Input(x), avg.get());
  ExpectNear(max, Doubles(4, kNan));
  ExpectNear(avg, Doubles(4, kNan));
}

}  // namespace
}  // namespace keelson
