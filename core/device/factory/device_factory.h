// Creates the devices that a flag names.
#ifndef KEELSON_CORE_DEVICE_FACTORY_DEVICE_FACTORY_H_
#define KEELSON_CORE_DEVICE_FACTORY_DEVICE_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "core/device/precision.h"

namespace keelson {

struct DeviceOptions {
  // Threads of a CPU device; 0: one per core that this process may use (available_cores.h).
  int threads = 0;
  // How a GPU multiplies matrices. The CPU computes in float32 alone.
  Precision precision = Precision::kFloat32;
};

// `name`: "cpu"; "cuda", the GPU 0; "cuda:N", the GPU N; "auto", which is "cuda" where that GPU is
// usable and else "cpu", with a line in the log that says why.
// INVALID_ARGUMENT: another name, more than one GPU, a negative number of threads, or "cpu" with
// another precision than float32. FAILED_PRECONDITION: no CUDA in this program, or no usable GPU of
// that number; "device cuda: no CUDA device: REASON".
absl::StatusOr<std::unique_ptr<Device>> CreateDevice(absl::string_view name,
                                                     const DeviceOptions& options = {});

// The same names, and "cuda:N,N,...": several different GPUs, the first of which is the one that
// the sums go to. Fails as CreateDevice does.
absl::StatusOr<std::unique_ptr<DeviceGroup>> CreateDevices(absl::string_view name,
                                                           const DeviceOptions& options = {});

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_FACTORY_DEVICE_FACTORY_H_
