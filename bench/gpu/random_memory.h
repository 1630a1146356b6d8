// Memory of a device with random numbers in it: on zeros a GPU is faster than on real data.
#ifndef KEELSON_BENCH_GPU_RANDOM_MEMORY_H_
#define KEELSON_BENCH_GPU_RANDOM_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace keelson::bench {

// The same for every call with the same `n`; from -1 to 1.
std::vector<float> RandomNumbers(int64_t n);

// Memory with `n` such numbers. RESOURCE_EXHAUSTED: out of memory.
absl::StatusOr<std::unique_ptr<DeviceMemory>> RandomMemory(Device* device, int64_t n);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_RANDOM_MEMORY_H_
