// Convolution as matrix products over columns (im2col).
// Source: Chellapilla, Puri, Simard, "High Performance Convolutional Neural Networks for Document
// Processing", 2006.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_

#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_memory.h"
#include "core/device/geometry.h"

namespace keelson {

// All on device addresses, within an operation begun on `context`, which takes a failure. The
// columns lie in `scratch`: those of as many images at a time as fit 128 MiB, and of one at least.

void CudaConvolve(const ConvGeometry& geometry, const float* x, const float* filter, float* y,
                  CudaScratch* scratch, CudaContext* context);
void CudaConvolveBackwardData(const ConvGeometry& geometry, const float* filter, const float* dy,
                              float* dx, CudaScratch* scratch, CudaContext* context);
void CudaConvolveBackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                                float* dfilter, CudaScratch* scratch, CudaContext* context);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_CONVOLUTION_H_
