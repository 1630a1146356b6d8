// Stands in for nccl_group.cc in a build without NCCL.
#include "absl/status/status.h"
#include "core/device/cuda/nccl_group.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeNcclGroup(
    std::vector<std::unique_ptr<CudaDevice>>* /*devices*/) {
  return absl::UnavailableError("this program was built without it");
}

}  // namespace keelson
