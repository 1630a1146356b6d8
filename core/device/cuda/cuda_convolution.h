// Convolution as matrix products over columns (im2col).
// Source: Chellapilla, Puri, Simard, "High Performance Convolutional Neural Networks for Document
// Processing", 2006.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_matmul.h"
#include "core/device/cuda/cuda_memory.h"
#include "core/device/geometry.h"

namespace keelson {

// All pointers are device addresses; all calls are made within an operation begun on the context,
// which keeps failures. The columns of as many images at a time as fit `column_bytes` in float32,
// and of one at least, lie in scratch memory; those of a 1 x 1 convolution are the images
// themselves.
class CudaConvolution {
 public:
  static constexpr int64_t kColumnBytes = int64_t{128} << 20;

  // `context` and `products` must outlive this object.
  CudaConvolution(CudaContext* context, CudaProducts* products, int64_t column_bytes = kColumnBytes)
      : context_(context), products_(products), column_bytes_(column_bytes), columns_(context) {}

  void Forward(const ConvGeometry& geometry, const float* x, const float* filter,
               const CudaEpilogue& epilogue, float* y);
  void BackwardData(const ConvGeometry& geometry, const float* filter, const float* dy, float* dx);
  void BackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                      float* dfilter);

 private:
  // Some images of a batch, and their position in it.
  struct ImageChunk {
    ConvGeometry geometry;
    int64_t x_offset;
    int64_t y_offset;
  };

  // Calls at_chunk for all the images in order, some at a time.
  void ForEachChunk(const ConvGeometry& geometry,
                    absl::FunctionRef<void(const ImageChunk&)> at_chunk);
  // args.m or args.k rows of columns times b.
  void MultiplyColumns(const ConvGeometry& chunk, const MatMulArgs& args, const float* x,
                       const float* b, const CudaEpilogue& epilogue, float* c);

  CudaContext* const context_;
  CudaProducts* const products_;
  const int64_t column_bytes_;
  CudaScratch columns_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_
