#include "core/device/cuda/element_math.h"
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace keelson::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kWholeWarp = 0xffffffffu;

// Block (x, y) adds up columns [32 x, 32 x + 32) of the rows of chunk y: lane = column, and each
// warp takes every eighth row.
__global__ void __launch_bounds__(kThreads)
    ColumnSumsKernel(int64_t rows, int64_t cols, int64_t rows_per_chunk, const float* x,
                     float* sums) {
  __shared__ float warp_sums[kWarps][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + lane;
  const int64_t first = blockIdx.y * rows_per_chunk;
  const int64_t end = first + rows_per_chunk < rows ? first + rows_per_chunk : rows;
  float sum = 0.0f;
  if (column < cols) {
    for (int64_t row = first + warp; row < end; row += kWarps) sum += x[row * cols + column];
  }
  warp_sums[warp][lane] = sum;
  __syncthreads();
  if (warp == 0 && column < cols) {
    for (int w = 1; w < kWarps; ++w) sum += warp_sums[w][lane];
    sums[blockIdx.y * cols + column] = sum;
  }
}

__device__ float WarpMax(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

__device__ float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, offset);
  }
  return value;
}

// One warp for each row.
__global__ void __launch_bounds__(kThreads)
    SoftmaxCrossEntropyKernel(int64_t rows, int64_t classes, const float* scores,
                              const float* labels, float* losses, float* dscores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float gradient_scale = 1.0f / static_cast<float>(rows);
  for (int64_t row = ThreadIndex() / kWarp; row < rows; row += ThreadCount() / kWarp) {
    const float* s = scores + row * classes;
    float largest = -INFINITY;
    for (int64_t i = lane; i < classes; i += kWarp) largest = fmaxf(largest, s[i]);
    largest = WarpMax(largest);
    float sum = 0.0f;
    for (int64_t i = lane; i < classes; i += kWarp) sum += expf(s[i] - largest);
    sum = WarpSum(sum);
    const int64_t label = static_cast<int64_t>(labels[row]);
    if (lane == 0) losses[row] = logf(sum) - (s[label] - largest);
    if (dscores == nullptr) continue;
    for (int64_t i = lane; i < classes; i += kWarp) {
      const float probability = expf(s[i] - largest) / sum;
      dscores[row * classes + i] = (probability - (i == label ? 1.0f : 0.0f)) * gradient_scale;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    SigmoidCrossEntropyKernel(int64_t rows, const float* scores, const float* labels, float* losses,
                              float* dscores) {
  const float gradient_scale = 1.0f / static_cast<float>(rows);
  for (int64_t i = ThreadIndex(); i < rows; i += ThreadCount()) {
    losses[i] = SigmoidLoss(scores[i], labels[i]);
    if (dscores != nullptr) dscores[i] = (Sigmoid(scores[i]) - labels[i]) * gradient_scale;
  }
}

__global__ void __launch_bounds__(kThreads)
    MeanSquaredErrorKernel(int64_t rows, const float* scores, const float* targets, float* losses,
                           float* dscores) {
  const float gradient_scale = 2.0f / static_cast<float>(rows);
  for (int64_t i = ThreadIndex(); i < rows; i += ThreadCount()) {
    const float error = scores[i] - targets[i];
    losses[i] = error * error;
    if (dscores != nullptr) dscores[i] = error * gradient_scale;
  }
}

cudaError_t LaunchColumnSumsOfChunks(cudaStream_t stream, int64_t rows, int64_t cols,
                                     int64_t chunks, const float* x, float* sums) {
  const dim3 blocks(static_cast<unsigned>((cols + kWarp - 1) / kWarp),
                    static_cast<unsigned>(chunks));
  ColumnSumsKernel<<<blocks, kThreads, 0, stream>>>(rows, cols, (rows + chunks - 1) / chunks, x,
                                                    sums);
  return cudaGetLastError();
}

}  // namespace

int64_t ColumnSumChunks(int64_t rows) {
  constexpr int64_t kRowsWorthABlock = 256, kMostChunks = 256;
  const int64_t chunks = (rows + kRowsWorthABlock - 1) / kRowsWorthABlock;
  if (chunks < 1) return 1;
  return chunks < kMostChunks ? chunks : kMostChunks;
}

cudaError_t LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t cols, const float* x,
                             float* partial, float* sums) {
  if (cols == 0) return cudaSuccess;
  const int64_t chunks = ColumnSumChunks(rows);
  if (chunks == 1) return LaunchColumnSumsOfChunks(stream, rows, cols, 1, x, sums);
  const cudaError_t error = LaunchColumnSumsOfChunks(stream, rows, cols, chunks, x, partial);
  if (error != cudaSuccess) return error;
  return LaunchColumnSumsOfChunks(stream, chunks, cols, 1, partial, sums);
}

cudaError_t LaunchSoftmaxCrossEntropy(cudaStream_t stream, int64_t rows, int64_t classes,
                                      const float* scores, const float* labels, float* losses,
                                      float* dscores) {
  if (rows == 0 || classes == 0) return cudaSuccess;
  SoftmaxCrossEntropyKernel<<<BlocksFor(rows, kWarps), kThreads, 0, stream>>>(
      rows, classes, scores, labels, losses, dscores);
  return cudaGetLastError();
}

cudaError_t LaunchSigmoidCrossEntropy(cudaStream_t stream, int64_t rows, const float* scores,
                                      const float* labels, float* losses, float* dscores) {
  if (rows == 0) return cudaSuccess;
  SigmoidCrossEntropyKernel<<<BlocksFor(rows), kThreads, 0, stream>>>(rows, scores, labels, losses,
                                                                      dscores);
  return cudaGetLastError();
}

cudaError_t LaunchMeanSquaredError(cudaStream_t stream, int64_t rows, const float* scores,
                                   const float* targets, float* losses, float* dscores) {
  if (rows == 0) return cudaSuccess;
  MeanSquaredErrorKernel<<<BlocksFor(rows), kThreads, 0, stream>>>(rows, scores, targets, losses,
                                                                   dscores);
  return cudaGetLastError();
}

}  // namespace keelson::cuda
