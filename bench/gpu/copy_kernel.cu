#include "bench/gpu/copy_kernel.h"
#include "core/device/cuda/kernels/launch.h"

namespace keelson::bench {
namespace {

// Loads that a thread has under way at a time.
constexpr int kUnroll = 4;

__global__ void __launch_bounds__(cuda::kThreads)
    CopyKernel(int64_t n4, const float4* __restrict__ from, float4* __restrict__ to) {
  const int64_t block = static_cast<int64_t>(blockDim.x) * kUnroll;
  const int64_t round = block * gridDim.x;
  for (int64_t at = blockIdx.x * block + threadIdx.x; at < n4; at += round) {
    float4 loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = at + u * static_cast<int64_t>(blockDim.x);
      if (i < n4) loaded[u] = from[i];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = at + u * static_cast<int64_t>(blockDim.x);
      if (i < n4) to[i] = loaded[u];
    }
  }
}

}  // namespace

cudaError_t LaunchCopy(cudaStream_t stream, int64_t n, const float* from, float* to) {
  const int64_t n4 = n / 4;
  if (n4 == 0) return cudaSuccess;
  return cuda::Launch(CopyKernel, dim3(cuda::BlocksFor(n4, cuda::kThreads * kUnroll)), stream, n4,
                      reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to));
}

}  // namespace keelson::bench
