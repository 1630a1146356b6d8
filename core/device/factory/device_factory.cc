#include "core/device/factory/device_factory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cuda/cuda_device.h"

namespace keelson {
namespace {

absl::Status NameError(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("device: expected cpu, cuda, cuda:N[,N...] or auto, found \"", name, "\""));
}

absl::StatusOr<std::vector<int>> ParseGpus(absl::string_view name) {
  absl::string_view numbers = name;
  if (!absl::ConsumePrefix(&numbers, "cuda")) return NameError(name);
  if (numbers.empty()) return std::vector<int>{0};
  if (!absl::ConsumePrefix(&numbers, ":")) return NameError(name);
  std::vector<int> gpus;
  for (absl::string_view number : absl::StrSplit(numbers, ',')) {
    int gpu = 0;
    if (!absl::SimpleAtoi(number, &gpu) || gpu < 0) return NameError(name);
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("device: expected different GPUs, found \"", name, "\""));
    }
    gpus.push_back(gpu);
  }
  return gpus;
}

std::unique_ptr<DeviceGroup> GroupOfOne(std::unique_ptr<Device> device) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::move(device));
  return MakePeerGroup(std::move(devices));
}

absl::StatusOr<std::unique_ptr<Device>> CreateCpu(const DeviceOptions& options) {
  if (options.precision != Precision::kFloat32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "precision: expected float32 on the device cpu, found ", PrecisionName(options.precision)));
  }
  return CreateCpuDevice(options.threads);
}

absl::StatusOr<std::unique_ptr<Device>> CreateAuto(const DeviceOptions& options) {
  auto cuda = CreateCudaDevice(0, options.precision);
  if (cuda.ok()) return cuda;
  ASSIGN_OR_RETURN(auto cpu, CreateCpuDevice(options.threads));
  LogInfo("device auto: ", absl::StripPrefix(cuda.status().message(), "device cuda: "), "; using ",
          cpu->name(),
          options.precision == Precision::kFloat32 ? "" : ", which computes in float32");
  return cpu;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateDevice(absl::string_view name,
                                                     const DeviceOptions& options) {
  if (name == "cpu") return CreateCpu(options);
  if (name == "auto") return CreateAuto(options);
  ASSIGN_OR_RETURN(const std::vector<int> gpus, ParseGpus(name));
  if (gpus.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: expected one GPU, found \"", name, "\""));
  }
  return CreateCudaDevice(gpus.front(), options.precision);
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> CreateDevices(absl::string_view name,
                                                           const DeviceOptions& options) {
  if (name != "cpu" && name != "auto") {
    ASSIGN_OR_RETURN(const std::vector<int> gpus, ParseGpus(name));
    if (gpus.size() > 1) return CreateCudaGroup(gpus, options.precision);
  }
  ASSIGN_OR_RETURN(auto device, CreateDevice(name, options));
  return GroupOfOne(std::move(device));
}

}  // namespace keelson
