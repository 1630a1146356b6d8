// A Device on one NVIDIA GPU, and a DeviceGroup of several.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "core/device/precision.h"

namespace keelson {

// FAILED_PRECONDITION: this program has no CUDA, or there is no usable GPU `ordinal` (from 0);
// "device cuda: no CUDA device: REASON".
absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal,
                                                         Precision precision = Precision::kFloat32);

// `ordinals`: one or more, all different. Sums by NCCL where it is installed, else by copies
// between the GPUs, which a line in the log says. Fails as CreateCudaDevice does.
absl::StatusOr<std::unique_ptr<DeviceGroup>> CreateCudaGroup(
    absl::Span<const int> ordinals, Precision precision = Precision::kFloat32);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
