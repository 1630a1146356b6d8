// A Device on one NVIDIA GPU.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace keelson {

// FAILED_PRECONDITION: this build has no CUDA, or there is no usable GPU `ordinal` (from 0).
absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
