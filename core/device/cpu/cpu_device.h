// A Device on this machine's cores: matrix products and convolutions by oneDNN, the rest by loops.
#ifndef KEELSON_CORE_DEVICE_CPU_CPU_DEVICE_H_
#define KEELSON_CORE_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace keelson {

// Every operation is done when its call returns. `threads` 0: one per core.
// INVALID_ARGUMENT: a negative number of threads.
absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(int threads);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_CPU_DEVICE_H_
