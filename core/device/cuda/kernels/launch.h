// Launches kernels, and tells kernels their positions; for .cu files.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_LAUNCH_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace keelson::cuda {

// Threads of a block, unless a kernel needs another number.
constexpr int kThreads = 256;

// Blocks for n units of work, `per_block` in each; beyond the limit, kernels take more than one
// round.
inline unsigned BlocksFor(int64_t n, int64_t per_block = kThreads) {
  constexpr int64_t kMostBlocks = 8192;
  const int64_t blocks = (n + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

// Puts `kernel` on `stream`, in `blocks` blocks of `threads` threads. Uses the runtime's typed call
// instead of <<<>>>, so that the emulation (testing/device) can replace it.
template <typename... Parameters, typename... Arguments>
cudaError_t LaunchWith(int threads, void (*kernel)(Parameters...), dim3 blocks, cudaStream_t stream,
                       Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// With kThreads threads in a block.
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 blocks, cudaStream_t stream,
                   Arguments... arguments) {
  return LaunchWith(kThreads, kernel, blocks, stream, arguments...);
}

__device__ inline int64_t ThreadIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline int64_t ThreadCount() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_LAUNCH_H_
