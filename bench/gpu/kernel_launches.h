// Bandwidth of kernels that the device's interface does not show by themselves: epilogues of
// products, conversions, and the encoders and decoders of the wire formats, without the copies to
// and from the host.
#ifndef KEELSON_BENCH_GPU_KERNEL_LAUNCHES_H_
#define KEELSON_BENCH_GPU_KERNEL_LAUNCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/gpu/kernels.h"
#include "bench/gpu/timing.h"

namespace keelson::bench {

// On tensors of `tensor_bytes` as float32. INTERNAL: a call of CUDA failed; RESOURCE_EXHAUSTED: out
// of memory.
absl::StatusOr<std::vector<KernelResult>> MeasureKernelLaunches(int ordinal, int64_t tensor_bytes,
                                                                const TimingOptions& timing);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_KERNEL_LAUNCHES_H_
