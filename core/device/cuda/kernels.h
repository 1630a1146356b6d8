// Starts the kernels of a CUDA device. Each call puts its work on `stream` and returns without
// waiting: the result is the launch's cudaGetLastError(). Pointers are device addresses; extents
// and formulas are those of core/device/device.h. An extent of 0 launches nothing.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/device/geometry.h"

namespace keelson::cuda {

// cudaSuccess when this program holds kernels for the current GPU.
cudaError_t FindKernels();

// elementwise.cu

cudaError_t LaunchFill(cudaStream_t stream, float value, int64_t n, float* x);
cudaError_t LaunchAxpy(cudaStream_t stream, float alpha, int64_t n, const float* x, float* y);
cudaError_t LaunchScale(cudaStream_t stream, float alpha, int64_t n, float* x);
cudaError_t LaunchAddBias(cudaStream_t stream, int64_t rows, int64_t cols, const float* bias,
                          float* y);
cudaError_t LaunchActivate(cudaStream_t stream, ActivationKind kind, int64_t n, const float* x,
                           float* y);
cudaError_t LaunchActivateBackward(cudaStream_t stream, ActivationKind kind, int64_t n,
                                   const float* y, const float* dy, float* dx);
cudaError_t LaunchDropout(cudaStream_t stream, float rate, uint64_t seed, int64_t n, const float* x,
                          float* y);

// window.cu

// columns [batch * out_height * out_width, kernel * kernel * in_channels]
cudaError_t LaunchImageToColumns(cudaStream_t stream, const ConvGeometry& geometry, const float* x,
                                 float* columns);
cudaError_t LaunchColumnsToImage(cudaStream_t stream, const ConvGeometry& geometry,
                                 const float* dcolumns, float* dx);
cudaError_t LaunchMaxPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y);
cudaError_t LaunchMaxPoolBackward(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                                  const float* y, const float* dy, float* dx);
cudaError_t LaunchAvgPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y);
cudaError_t LaunchAvgPoolBackward(cudaStream_t stream, const PoolGeometry& geometry,
                                  const float* dy, float* dx);

// reduction.cu

// Chunks of rows that LaunchColumnSums adds up apart from each other; more than one needs
// `partial` [chunks, cols].
int64_t ColumnSumChunks(int64_t rows);
// sums [cols] of x [rows, cols], in an order that depends on the extents alone.
cudaError_t LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t cols, const float* x,
                             float* partial, float* sums);
// The losses; `dscores` may be null.
cudaError_t LaunchSoftmaxCrossEntropy(cudaStream_t stream, int64_t rows, int64_t classes,
                                      const float* scores, const float* labels, float* losses,
                                      float* dscores);
cudaError_t LaunchSigmoidCrossEntropy(cudaStream_t stream, int64_t rows, const float* scores,
                                      const float* labels, float* losses, float* dscores);
cudaError_t LaunchMeanSquaredError(cudaStream_t stream, int64_t rows, const float* scores,
                                   const float* targets, float* losses, float* dscores);

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_H_
