// Stands in for core/device/cuda in a build without CUDA.
#include "core/device/cuda/cuda_device.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int /*ordinal*/) {
  return absl::FailedPreconditionError(
      "device cuda: this program was built without CUDA; use --device=cpu or --device=auto");
}

}  // namespace keelson
