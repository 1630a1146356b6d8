#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/element_math.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

// Scores of a row that a thread of its warp keeps in registers, at most.
constexpr int kMostPerThread = 16;

// One warp for each row, which is read once.
template <int kPerThread>
__global__ void __launch_bounds__(kThreads)
    SoftmaxOfWarpKernel(int64_t rows, int64_t classes, float weight, const float* scores,
                        const float* labels, float* losses, float* dscores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = ThreadIndex() / kWarp; row < rows; row += ThreadCount() / kWarp) {
    const int64_t label = static_cast<int64_t>(labels[row]);
    float s[kPerThread];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      s[k] = i < classes ? scores[row * classes + i] : -INFINITY;
      largest = fmaxf(largest, s[k]);
    }
    largest = WarpReduce(largest, Maximum());
    float sum = 0.0f, label_score = 0.0f;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      if (i == label) label_score = s[k] - largest;
      s[k] = i < classes ? expf(s[k] - largest) : 0.0f;
      sum += s[k];
    }
    sum = WarpReduce(sum, Plus());
    if (lane == label % kWarp) losses[row] = logf(sum) - label_score;
    if (dscores == nullptr) continue;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = lane + k * kWarp;
      if (i >= classes) continue;
      dscores[row * classes + i] = (s[k] / sum - (i == label ? 1.0f : 0.0f)) * weight;
    }
  }
}

// One block for each row.
__global__ void __launch_bounds__(kThreads)
    SoftmaxOfBlockKernel(int64_t rows, int64_t classes, float weight, const float* scores,
                         const float* labels, float* losses, float* dscores) {
  __shared__ float largest_of_warps[kWarps];
  __shared__ float sums_of_warps[kWarps];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* s = scores + row * classes;
    const int64_t label = static_cast<int64_t>(labels[row]);
    float largest = -INFINITY;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) largest = fmaxf(largest, s[i]);
    largest = BlockReduce(largest, largest_of_warps, Maximum());
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) sum += expf(s[i] - largest);
    sum = BlockReduce(sum, sums_of_warps, Plus());
    if (threadIdx.x == 0) losses[row] = logf(sum) - (s[label] - largest);
    if (dscores == nullptr) continue;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) {
      const float probability = expf(s[i] - largest) / sum;
      dscores[row * classes + i] = (probability - (i == label ? 1.0f : 0.0f)) * weight;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    SigmoidCrossEntropyKernel(int64_t rows, float weight, const float* scores, const float* labels,
                              float* losses, float* dscores) {
  for (int64_t i = ThreadIndex(); i < rows; i += ThreadCount()) {
    losses[i] = SigmoidLoss(scores[i], labels[i]);
    if (dscores != nullptr) dscores[i] = (Sigmoid(scores[i]) - labels[i]) * weight;
  }
}

__global__ void __launch_bounds__(kThreads)
    MeanSquaredErrorKernel(int64_t rows, float weight, const float* scores, const float* targets,
                           float* losses, float* dscores) {
  for (int64_t i = ThreadIndex(); i < rows; i += ThreadCount()) {
    const float error = scores[i] - targets[i];
    losses[i] = error * error;
    if (dscores != nullptr) dscores[i] = 2.0f * error * weight;
  }
}

__global__ void __launch_bounds__(kThreads)
    HuberLossKernel(int64_t rows, float delta, float weight, const float* scores,
                    const float* targets, float* losses, float* dscores) {
  for (int64_t i = ThreadIndex(); i < rows; i += ThreadCount()) {
    const float error = scores[i] - targets[i];
    // Not-a-number stays: fminf and fmaxf would drop it.
    const float slope = error > delta ? delta : (error < -delta ? -delta : error);
    losses[i] = slope * (error - 0.5f * slope);
    if (dscores != nullptr) dscores[i] = slope * weight;
  }
}

}  // namespace

cudaError_t LaunchSoftmaxCrossEntropy(cudaStream_t stream, int64_t rows, int64_t classes,
                                      float weight, const float* scores, const float* labels,
                                      float* losses, float* dscores) {
  if (rows == 0 || classes == 0) return cudaSuccess;
  const dim3 warps(BlocksFor(rows, kWarps));
  if (classes <= kWarp) {
    return Launch(SoftmaxOfWarpKernel<1>, warps, stream, rows, classes, weight, scores, labels,
                  losses, dscores);
  }
  if (classes <= 4 * kWarp) {
    return Launch(SoftmaxOfWarpKernel<4>, warps, stream, rows, classes, weight, scores, labels,
                  losses, dscores);
  }
  if (classes <= kMostPerThread * kWarp) {
    return Launch(SoftmaxOfWarpKernel<kMostPerThread>, warps, stream, rows, classes, weight, scores,
                  labels, losses, dscores);
  }
  return Launch(SoftmaxOfBlockKernel, BlocksFor(rows, 1), stream, rows, classes, weight, scores,
                labels, losses, dscores);
}

cudaError_t LaunchSigmoidCrossEntropy(cudaStream_t stream, int64_t rows, float weight,
                                      const float* scores, const float* labels, float* losses,
                                      float* dscores) {
  if (rows == 0) return cudaSuccess;
  return Launch(SigmoidCrossEntropyKernel, BlocksFor(rows), stream, rows, weight, scores, labels,
                losses, dscores);
}

cudaError_t LaunchMeanSquaredError(cudaStream_t stream, int64_t rows, float weight,
                                   const float* scores, const float* targets, float* losses,
                                   float* dscores) {
  if (rows == 0) return cudaSuccess;
  return Launch(MeanSquaredErrorKernel, BlocksFor(rows), stream, rows, weight, scores, targets,
                losses, dscores);
}

cudaError_t LaunchHuberLoss(cudaStream_t stream, int64_t rows, float delta, float weight,
                            const float* scores, const float* targets, float* losses,
                            float* dscores) {
  if (rows == 0) return cudaSuccess;
  return Launch(HuberLossKernel, BlocksFor(rows), stream, rows, delta, weight, scores, targets,
                losses, dscores);
}

}  // namespace keelson::cuda
