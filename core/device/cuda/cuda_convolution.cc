#include "core/device/cuda/cuda_convolution.h"

#include <algorithm>

#include "core/device/cuda/cuda_matmul.h"
#include "core/device/cuda/kernels.h"

namespace keelson {
namespace {

constexpr int64_t kColumnFloats = int64_t{128} << 20 >> 2;

int64_t PixelsPerImage(const ConvGeometry& g) { return g.out_height * g.out_width; }
int64_t WindowSize(const ConvGeometry& g) { return g.kernel * g.kernel * g.in_channels; }

// Some images of a batch, and where they begin in it.
struct ImageChunk {
  ConvGeometry geometry;
  int64_t x_offset;
  int64_t y_offset;

  int64_t pixels() const { return geometry.batch * PixelsPerImage(geometry); }
};

// Calls at_chunk(chunk, columns) for all the images in order.
template <typename F>
void ForEachChunk(const ConvGeometry& g, CudaScratch* scratch, const CudaContext& context,
                  F at_chunk) {
  const int64_t floats_per_image = std::max<int64_t>(1, PixelsPerImage(g) * WindowSize(g));
  const int64_t most =
      std::clamp<int64_t>(kColumnFloats / floats_per_image, 1, std::max<int64_t>(1, g.batch));
  float* const columns = scratch->Get(most * floats_per_image);
  for (int64_t first = 0; first < g.batch && context.status().ok(); first += most) {
    ImageChunk chunk{g, first * g.in_height * g.in_width * g.in_channels,
                     first * PixelsPerImage(g) * g.out_channels};
    chunk.geometry.batch = std::min(most, g.batch - first);
    at_chunk(chunk, columns);
  }
}

}  // namespace

void CudaConvolve(const ConvGeometry& geometry, const float* x, const float* filter, float* y,
                  CudaScratch* scratch, CudaContext* context) {
  ForEachChunk(geometry, scratch, *context, [&](const ImageChunk& chunk, float* columns) {
    context->Check(
        "ImageToColumnsKernel",
        cuda::LaunchImageToColumns(context->stream(), chunk.geometry, x + chunk.x_offset, columns));
    MatMulArgs args;
    args.m = chunk.pixels();
    args.n = geometry.out_channels;
    args.k = WindowSize(geometry);
    CudaMatMul(args, columns, filter, y + chunk.y_offset, context);
  });
}

void CudaConvolveBackwardData(const ConvGeometry& geometry, const float* filter, const float* dy,
                              float* dx, CudaScratch* scratch, CudaContext* context) {
  ForEachChunk(geometry, scratch, *context, [&](const ImageChunk& chunk, float* columns) {
    MatMulArgs args;
    args.m = chunk.pixels();
    args.n = WindowSize(geometry);
    args.k = geometry.out_channels;
    args.transpose_b = true;
    CudaMatMul(args, dy + chunk.y_offset, filter, columns, context);
    context->Check("ColumnsToImageKernel",
                   cuda::LaunchColumnsToImage(context->stream(), chunk.geometry, columns,
                                              dx + chunk.x_offset));
  });
}

void CudaConvolveBackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                                float* dfilter, CudaScratch* scratch, CudaContext* context) {
  context->Check("FillKernel",
                 cuda::LaunchFill(context->stream(), 0, geometry.filter_size(), dfilter));
  ForEachChunk(geometry, scratch, *context, [&](const ImageChunk& chunk, float* columns) {
    context->Check(
        "ImageToColumnsKernel",
        cuda::LaunchImageToColumns(context->stream(), chunk.geometry, x + chunk.x_offset, columns));
    MatMulArgs args;
    args.m = WindowSize(geometry);
    args.n = geometry.out_channels;
    args.k = chunk.pixels();
    args.transpose_a = true;
    args.beta = 1;
    CudaMatMul(args, columns, dy + chunk.y_offset, dfilter, context);
  });
}

}  // namespace keelson
