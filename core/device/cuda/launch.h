// Extents of launches; for .cu files.
#ifndef KEELSON_CORE_DEVICE_CUDA_LAUNCH_H_
#define KEELSON_CORE_DEVICE_CUDA_LAUNCH_H_

#include <cstdint>

namespace keelson::cuda {

// Threads of a block, in every kernel.
constexpr int kThreads = 256;

// Blocks for n units of work, `per_block` in each; beyond the limit, kernels take more than one
// round.
inline unsigned BlocksFor(int64_t n, int64_t per_block = kThreads) {
  constexpr int64_t kMostBlocks = 8192;
  const int64_t blocks = (n + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ inline int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline int64_t ThreadCount() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_LAUNCH_H_
