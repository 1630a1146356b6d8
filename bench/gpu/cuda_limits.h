// The limits of a GPU, measured with CUDA's own calls beside the device's operations. No CUDA
// header is needed to use it.
#ifndef KEELSON_BENCH_GPU_CUDA_LIMITS_H_
#define KEELSON_BENCH_GPU_CUDA_LIMITS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "bench/gpu/timing.h"
#include "bench/statistics.h"
#include "core/device/geometry.h"
#include "core/device/precision.h"

namespace keelson::bench {

// The description of a GPU: "NVIDIA H200", the driver's version as CUDA counts it: 13000 is 13.0.
struct GpuDescription {
  std::string name;
  int compute_capability = 0;  // 90 is 9.0
  int driver_version = 0;
  int64_t memory_bytes = 0;
};

// FAILED_PRECONDITION: there is no such GPU, or no driver; says which.
absl::StatusOr<GpuDescription> DescribeGpu(int ordinal);

// Owns streams and memory of its own on one GPU. Used by one thread. INTERNAL: a call of CUDA
// failed; RESOURCE_EXHAUSTED: out of memory.
class CudaLimits {
 public:
  virtual ~CudaLimits() = default;

  // FAILED_PRECONDITION: there is no such GPU.
  static absl::StatusOr<std::unique_ptr<CudaLimits>> Create(int ordinal,
                                                            const TimingOptions& timing);

  // Bytes per second of copies of `bytes` within the GPU, read and written ones together: by a
  // kernel of 16-byte accesses, and by cudaMemcpyAsync.
  virtual absl::StatusOr<Spread> CopyByKernel(int64_t bytes) = 0;
  virtual absl::StatusOr<Spread> CopyByMemcpy(int64_t bytes) = 0;

  // Bytes per second between page-locked memory and the GPU; and in both directions at the same
  // time, what each carries.
  virtual absl::StatusOr<Spread> HostToDevice(int64_t bytes) = 0;
  virtual absl::StatusOr<Spread> DeviceToHost(int64_t bytes) = 0;
  virtual absl::StatusOr<Spread> BothDirections(int64_t bytes) = 0;

  // Floating-point operations per second, 2 m n k of them, of the product by cuBLASLt alone: no
  // epilogue, operands that are bfloat16 already, and the fastest of the algorithms that its
  // heuristics offer. alpha is 1, beta 0.
  virtual absl::StatusOr<Spread> Product(Precision precision, const MatMulArgs& args) = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_CUDA_LIMITS_H_
