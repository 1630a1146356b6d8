// Reductions over the threads of a warp or a block, in a fixed order; for .cu files.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_BLOCK_REDUCE_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_BLOCK_REDUCE_H_

#include <cstdint>

#include "core/device/cuda/kernels/launch.h"

namespace keelson::cuda {

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kWholeWarp = 0xffffffffu;

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

// Combines the values of a warp's threads; all of them call it and get the result.
template <typename T, typename Combine>
__device__ T WarpReduce(T value, Combine combine) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

// Combines the values of a block's kThreads threads; all of them call it and get the result.
// `shared` is reserved for this call until the next __syncthreads().
template <typename T, typename Combine>
__device__ T BlockReduce(T value, T (&shared)[kWarps], Combine combine) {
  value = WarpReduce(value, combine);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  value = shared[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) value = combine(value, shared[warp]);
  return value;
}

// The sum of the values of the threads before this one. All of a block's threads call it; `shared`
// as in BlockReduce.
__device__ inline uint32_t BlockPrefixSum(uint32_t value, uint32_t (&shared)[kWarps],
                                          uint32_t* total) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  uint32_t inclusive = value;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const uint32_t before = __shfl_up_sync(kWholeWarp, inclusive, static_cast<unsigned>(offset));
    if (lane >= offset) inclusive += before;
  }
  if (lane == kWarp - 1) shared[thread / kWarp] = inclusive;
  __syncthreads();
  uint32_t before = 0, all = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp < thread / kWarp) before += shared[warp];
    all += shared[warp];
  }
  *total = all;
  return before + inclusive - value;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_BLOCK_REDUCE_H_
