#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/divisor.h"
#include "core/device/cuda/kernels/element_math.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

// Scores of a row that a thread of its warp keeps in registers, at most.
constexpr int kMostPerThread = 16;

// Few classes: a row of them is computed by one thread.
constexpr int kFewClasses = 16;

// A block brings the scores of kThreads rows into shared memory together, so that its accesses are
// to consecutive addresses, and each thread computes one row there.
template <int kMostClasses>
__global__ void __launch_bounds__(kThreads)
    SoftmaxLossOfThreadKernel(int64_t rows, Divisor<int32_t> classes, float weight,
                              const float* scores, const float* labels, float* losses,
                              float* dscores) {
  __shared__ float tile[kThreads * (kMostClasses + 1)];
  // Odd, so that the threads of a warp are at different banks.
  const int width = classes.value(), pitch = width | 1;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t first = int64_t{blockIdx.x} * kThreads; first < rows;
       first += int64_t{gridDim.x} * kThreads) {
    const int count = rows - first < kThreads ? static_cast<int>(rows - first) : kThreads;
    for (int i = thread; i < count * width; i += kThreads) {
      const auto [row, column] = DivideBy(classes, i);
      tile[row * pitch + column] = scores[first * width + i];
    }
    __syncthreads();
    if (thread < count) {
      float* const s = tile + thread * pitch;
      const int label = static_cast<int>(labels[first + thread]);
      float largest = -INFINITY, sum = 0.0f;
      for (int i = 0; i < width; ++i) largest = fmaxf(largest, s[i]);
      const float label_score = s[label] - largest;
      for (int i = 0; i < width; ++i) {
        s[i] = expf(s[i] - largest);
        sum += s[i];
      }
      losses[first + thread] = logf(sum) - label_score;
      for (int i = 0; i < width; ++i) {
        s[i] = (s[i] / sum - (i == label ? 1.0f : 0.0f)) * weight;
      }
    }
    __syncthreads();
    if (dscores == nullptr) continue;
    for (int i = thread; i < count * width; i += kThreads) {
      const auto [row, column] = DivideBy(classes, i);
      dscores[first * width + i] = tile[row * pitch + column];
    }
    __syncthreads();  // before the next rows
  }
}

// One warp for each row, which is read once.
template <int kPerThread>
__global__ void __launch_bounds__(kThreads)
    SoftmaxLossOfWarpKernel(int64_t rows, int64_t classes, float weight, const float* scores,
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

// One block for each row, which is read once: a thread keeps kPerThread scores in registers.
template <int kPerThread>
__global__ void __launch_bounds__(kThreads)
    SoftmaxLossOfBlockKernel(int64_t rows, int classes, float weight, const float* scores,
                             const float* labels, float* losses, float* dscores) {
  __shared__ float largest_of_warps[kWarps];
  __shared__ float sums_of_warps[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int label = static_cast<int>(labels[row]);
    float s[kPerThread];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int i = thread + k * kThreads;
      s[k] = i < classes ? scores[row * classes + i] : -INFINITY;
      largest = fmaxf(largest, s[k]);
    }
    largest = BlockReduce(largest, largest_of_warps, Maximum());
    float sum = 0.0f, label_score = 0.0f;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int i = thread + k * kThreads;
      if (i == label) label_score = s[k] - largest;
      s[k] = i < classes ? expf(s[k] - largest) : 0.0f;
      sum += s[k];
    }
    sum = BlockReduce(sum, sums_of_warps, Plus());
    if (thread == label % kThreads) losses[row] = logf(sum) - label_score;
    if (dscores == nullptr) continue;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int i = thread + k * kThreads;
      if (i >= classes) continue;
      dscores[row * classes + i] = (s[k] / sum - (i == label ? 1.0f : 0.0f)) * weight;
    }
  }
}

// One block for each row, which is read three times.
__global__ void __launch_bounds__(kThreads)
    SoftmaxLossOfLongRowKernel(int64_t rows, int64_t classes, float weight, const float* scores,
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
  if (classes <= kFewClasses) {
    return Launch(SoftmaxLossOfThreadKernel<kFewClasses>, BlocksFor(rows), stream, rows,
                  Divisor<int32_t>(classes), weight, scores, labels, losses, dscores);
  }
  const dim3 warps(BlocksFor(rows, kWarps));
  if (classes <= kWarp) {
    return Launch(SoftmaxLossOfWarpKernel<1>, warps, stream, rows, classes, weight, scores, labels,
                  losses, dscores);
  }
  if (classes <= 4 * kWarp) {
    return Launch(SoftmaxLossOfWarpKernel<4>, warps, stream, rows, classes, weight, scores, labels,
                  losses, dscores);
  }
  if (classes <= kMostPerThread * kWarp) {
    return Launch(SoftmaxLossOfWarpKernel<kMostPerThread>, warps, stream, rows, classes, weight,
                  scores, labels, losses, dscores);
  }
  const dim3 blocks(BlocksFor(rows, 1));
  if (classes <= 4 * kThreads) {
    return Launch(SoftmaxLossOfBlockKernel<4>, blocks, stream, rows, static_cast<int>(classes),
                  weight, scores, labels, losses, dscores);
  }
  return Launch(SoftmaxLossOfLongRowKernel, blocks, stream, rows, classes, weight, scores, labels,
                losses, dscores);
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
