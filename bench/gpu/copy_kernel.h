// The simplest kernel, with which the bandwidth of Keelson's kernels is compared.
#ifndef KEELSON_BENCH_GPU_COPY_KERNEL_H_
#define KEELSON_BENCH_GPU_COPY_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace keelson::bench {

// Copies n floats, a multiple of 4, between arrays that are aligned to 16 bytes.
cudaError_t LaunchCopy(cudaStream_t stream, int64_t n, const float* from, float* to);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_COPY_KERNEL_H_
