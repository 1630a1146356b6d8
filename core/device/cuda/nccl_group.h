// A DeviceGroup that sums by NCCL.
#ifndef KEELSON_CORE_DEVICE_CUDA_NCCL_GROUP_H_
#define KEELSON_CORE_DEVICE_CUDA_NCCL_GROUP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/device_group.h"

namespace keelson {

// Takes the devices, two or more, only when it succeeds.
// UNAVAILABLE: NCCL is not installed, does not work here, or is not part of this build.
absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeNcclGroup(
    std::vector<std::unique_ptr<CudaDevice>>* devices);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_NCCL_GROUP_H_
