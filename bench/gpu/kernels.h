// Bandwidth of the device's own kernels, operation by operation.
#ifndef KEELSON_BENCH_GPU_KERNELS_H_
#define KEELSON_BENCH_GPU_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/gpu/timing.h"
#include "core/device/device.h"

namespace keelson::bench {

struct KernelResult {
  std::string name;
  // The counted bytes of one call: "x, y": each array that must be read or written, as often as it
  // must be.
  std::string counted;
  double bytes = 0;
  Spread bytes_per_second;
};

// Operations of `device` on tensors of `tensor_bytes`, which should be much more than the GPU's
// second-level cache.
absl::StatusOr<std::vector<KernelResult>> MeasureKernels(int64_t tensor_bytes, Device* device,
                                                         const TimingOptions& timing);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_KERNELS_H_
