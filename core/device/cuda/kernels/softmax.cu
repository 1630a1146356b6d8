#include <math.h>

#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

// Elements of a row that a thread of its warp keeps in registers, at most.
constexpr int kMostKept = 16;

// One warp for each row, which is read once. y may be x.
template <int kPerThread>
__global__ void __launch_bounds__(kThreads)
    SoftmaxOfRowKernel(int64_t rows, int64_t columns, const float* x, float* y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = ThreadIndex() / kWarp; row < rows; row += ThreadCount() / kWarp) {
    float values[kPerThread];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      values[k] = i < columns ? x[row * columns + i] : -INFINITY;
      largest = fmaxf(largest, values[k]);
    }
    largest = WarpReduce(largest, Maximum());
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      values[k] = lane + k * kWarp < columns ? expf(values[k] - largest) : 0.0f;
      sum += values[k];
    }
    sum = WarpReduce(sum, Plus());
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      if (i < columns) y[row * columns + i] = values[k] / sum;
    }
  }
}

// One block for each row, which is read three times. y may be x: all threads have read what they
// need of other threads' elements before the first of them writes.
__global__ void __launch_bounds__(kThreads)
    SoftmaxOfLongRowKernel(int64_t rows, int64_t columns, const float* x, float* y) {
  __shared__ float largest_of_warps[kWarps];
  __shared__ float sums_of_warps[kWarps];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* in = x + row * columns;
    float* out = y + row * columns;
    float largest = -INFINITY;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) largest = fmaxf(largest, in[i]);
    largest = BlockReduce(largest, largest_of_warps, Maximum());
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += expf(in[i] - largest);
    sum = BlockReduce(sum, sums_of_warps, Plus());
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) out[i] = expf(in[i] - largest) / sum;
  }
}

// dx may be dy.
template <int kPerThread>
__global__ void __launch_bounds__(kThreads)
    SoftmaxBackwardOfRowKernel(int64_t rows, int64_t columns, const float* y, const float* dy,
                               float* dx) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = ThreadIndex() / kWarp; row < rows; row += ThreadCount() / kWarp) {
    float outputs[kPerThread], gradients[kPerThread];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      outputs[k] = i < columns ? y[row * columns + i] : 0.0f;
      gradients[k] = i < columns ? dy[row * columns + i] : 0.0f;
      sum += outputs[k] * gradients[k];
    }
    sum = WarpReduce(sum, Plus());
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      if (i < columns) dx[row * columns + i] = outputs[k] * (gradients[k] - sum);
    }
  }
}

// dx may be dy.
__global__ void __launch_bounds__(kThreads)
    SoftmaxBackwardOfLongRowKernel(int64_t rows, int64_t columns, const float* y, const float* dy,
                                   float* dx) {
  __shared__ float sums_of_warps[kWarps];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * columns;
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += y[first + i] * dy[first + i];
    sum = BlockReduce(sum, sums_of_warps, Plus());
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
      dx[first + i] = y[first + i] * (dy[first + i] - sum);
    }
    __syncthreads();  // before the next row's sums
  }
}

}  // namespace

cudaError_t LaunchSoftmax(cudaStream_t stream, int64_t rows, int64_t columns, const float* x,
                          float* y) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const unsigned warps = BlocksFor(rows, kWarps);
  if (columns <= kWarp) return Launch(SoftmaxOfRowKernel<1>, warps, stream, rows, columns, x, y);
  if (columns <= 4 * kWarp) {
    return Launch(SoftmaxOfRowKernel<4>, warps, stream, rows, columns, x, y);
  }
  if (columns <= kMostKept * kWarp) {
    return Launch(SoftmaxOfRowKernel<kMostKept>, warps, stream, rows, columns, x, y);
  }
  return Launch(SoftmaxOfLongRowKernel, BlocksFor(rows, 1), stream, rows, columns, x, y);
}

cudaError_t LaunchSoftmaxBackward(cudaStream_t stream, int64_t rows, int64_t columns,
                                  const float* y, const float* dy, float* dx) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const unsigned warps = BlocksFor(rows, kWarps);
  if (columns <= kWarp) {
    return Launch(SoftmaxBackwardOfRowKernel<1>, warps, stream, rows, columns, y, dy, dx);
  }
  if (columns <= 4 * kWarp) {
    return Launch(SoftmaxBackwardOfRowKernel<4>, warps, stream, rows, columns, y, dy, dx);
  }
  if (columns <= kMostKept * kWarp) {
    return Launch(SoftmaxBackwardOfRowKernel<kMostKept>, warps, stream, rows, columns, y, dy, dx);
  }
  return Launch(SoftmaxBackwardOfLongRowKernel, BlocksFor(rows, 1), stream, rows, columns, y, dy,
                dx);
}

}  // namespace keelson::cuda
