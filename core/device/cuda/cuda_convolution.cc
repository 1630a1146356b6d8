#include "core/device/cuda/cuda_convolution.h"

#include <algorithm>

#include "core/device/cuda/kernels/kernels.h"

namespace keelson {
namespace {

int64_t PixelsPerImage(const ConvGeometry& g) { return g.out_height * g.out_width; }
int64_t Pixels(const ConvGeometry& g) { return g.batch * PixelsPerImage(g); }
int64_t WindowSize(const ConvGeometry& g) { return g.kernel * g.kernel * g.in_channels; }
int64_t ColumnFloats(const ConvGeometry& g) { return Pixels(g) * WindowSize(g); }

bool IsPointwise(const ConvGeometry& g) {
  return g.kernel == 1 && g.stride == 1 && g.pad_top == 0 && g.pad_left == 0 &&
         g.in_height == g.out_height && g.in_width == g.out_width;
}

}  // namespace

void CudaConvolution::ForEachChunk(const ConvGeometry& g,
                                   absl::FunctionRef<void(const ImageChunk&)> at_chunk) {
  int64_t most = std::max<int64_t>(1, g.batch);
  if (!IsPointwise(g)) {
    constexpr int64_t kFloatBytes = sizeof(float);
    const int64_t image_bytes = PixelsPerImage(g) * WindowSize(g) * kFloatBytes;
    most = std::max<int64_t>(1, column_bytes_ / std::max(kFloatBytes, image_bytes));
  }
  for (int64_t first = 0; first < g.batch && context_->status().ok(); first += most) {
    ImageChunk chunk{g, first * g.in_height * g.in_width * g.in_channels,
                     first * PixelsPerImage(g) * g.out_channels};
    chunk.geometry.batch = std::min(most, g.batch - first);
    at_chunk(chunk);
  }
}

void CudaConvolution::MultiplyColumns(const ConvGeometry& chunk, const MatMulArgs& args,
                                      const float* x, const float* b, const CudaEpilogue& epilogue,
                                      float* c) {
  if (IsPointwise(chunk)) return products_->MatMul(args, x, b, epilogue, c);
  const cudaStream_t stream = context_->compute();
  if (context_->precision() == Precision::kBfloat16) {
    auto* const columns = columns_.Get<uint16_t>(ColumnFloats(chunk));
    if (columns != nullptr &&
        context_->Check("ImageToBfloat16ColumnsKernel",
                        cuda::LaunchImageToBfloat16Columns(stream, chunk, x, columns))) {
      products_->MatMul(args, columns, b, epilogue, c);
    }
    return;
  }
  auto* const columns = columns_.Get<float>(ColumnFloats(chunk));
  if (columns != nullptr &&
      context_->Check("ImageToColumnsKernel",
                      cuda::LaunchImageToColumns(stream, chunk, x, columns))) {
    products_->MatMul(args, columns, b, epilogue, c);
  }
}

void CudaConvolution::Forward(const ConvGeometry& geometry, const float* x, const float* filter,
                              const CudaEpilogue& epilogue, float* y) {
  ForEachChunk(geometry, [&](const ImageChunk& chunk) {
    MatMulArgs args;
    args.m = Pixels(chunk.geometry);
    args.n = geometry.out_channels;
    args.k = WindowSize(geometry);
    MultiplyColumns(chunk.geometry, args, x + chunk.x_offset, filter, epilogue, y + chunk.y_offset);
  });
}

void CudaConvolution::BackwardData(const ConvGeometry& geometry, const float* filter,
                                   const float* dy, float* dx) {
  ForEachChunk(geometry, [&](const ImageChunk& chunk) {
    MatMulArgs args;
    args.m = Pixels(chunk.geometry);
    args.n = WindowSize(geometry);
    args.k = geometry.out_channels;
    args.transpose_b = true;
    float* const images = dx + chunk.x_offset;
    if (IsPointwise(geometry)) {
      return products_->MatMul(args, dy + chunk.y_offset, filter, {}, images);
    }
    auto* const columns = columns_.Get<float>(ColumnFloats(chunk.geometry));
    if (columns == nullptr) return;
    products_->MatMul(args, dy + chunk.y_offset, filter, {}, columns);
    if (!context_->status().ok()) return;
    context_->Check(
        "ColumnsToImageKernel",
        cuda::LaunchColumnsToImage(context_->compute(), chunk.geometry, columns, images));
  });
}

void CudaConvolution::BackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                                     float* dfilter) {
  if (geometry.batch == 0) {
    context_->Check("FillKernel",
                    cuda::LaunchFill(context_->compute(), 0, geometry.filter_size(), dfilter));
  }
  ForEachChunk(geometry, [&](const ImageChunk& chunk) {
    MatMulArgs args;
    args.m = WindowSize(geometry);
    args.n = geometry.out_channels;
    args.k = Pixels(chunk.geometry);
    args.transpose_a = true;
    args.beta = chunk.x_offset == 0 ? 0.0f : 1.0f;
    MultiplyColumns(chunk.geometry, args, x + chunk.x_offset, dy + chunk.y_offset, {}, dfilter);
  });
}

}  // namespace keelson
