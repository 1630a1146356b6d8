// Makes the device that a flag names.
#ifndef KEELSON_CORE_DEVICE_DEVICE_FACTORY_H_
#define KEELSON_CORE_DEVICE_DEVICE_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/device/device.h"

namespace keelson {

struct DeviceOptions {
  // Threads of a CPU device; 0: one per core that this process may use (available_cores.h).
  int threads = 0;
  // Number of the GPU of a CUDA device.
  int cuda_ordinal = 0;
};

// `name`: "cpu"; "cuda"; "auto", which is CUDA where there is a usable GPU, else the CPU: log the
// result's name().
// INVALID_ARGUMENT: another name, or a negative number of threads. FAILED_PRECONDITION: "cuda"
// without CUDA in this build or without a usable GPU.
absl::StatusOr<std::unique_ptr<Device>> CreateDevice(absl::string_view name,
                                                     const DeviceOptions& options = {});

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_DEVICE_FACTORY_H_
