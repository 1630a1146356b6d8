#include "core/device/device_factory.h"

#include "absl/strings/str_cat.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cuda/cuda_device.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<Device>> CreateDevice(absl::string_view name,
                                                     const DeviceOptions& options) {
  if (name == "cpu") return CreateCpuDevice(options.threads);
  if (name == "cuda") return CreateCudaDevice(options.cuda_ordinal);
  if (name == "auto") {
    auto cuda = CreateCudaDevice(options.cuda_ordinal);
    return cuda.ok() ? std::move(cuda) : CreateCpuDevice(options.threads);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device: expected cpu, cuda or auto, found \"", name, "\""));
}

}  // namespace keelson
