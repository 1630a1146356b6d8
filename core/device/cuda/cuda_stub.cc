// Stands in for core/device/cuda in a build without CUDA.
#include "core/device/cuda/cuda_device.h"

namespace keelson {
namespace {

absl::Status NoCuda() {
  return absl::FailedPreconditionError(
      "device cuda: no CUDA device: this program was built without CUDA");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int /*ordinal*/, Precision /*precision*/) {
  return NoCuda();
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> CreateCudaGroup(absl::Span<const int> /*ordinals*/,
                                                             Precision /*precision*/) {
  return NoCuda();
}

}  // namespace keelson
