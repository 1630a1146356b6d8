#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/cuda/nccl_group.h"
#include "core/device/device_group.h"

namespace keelson {
namespace {

std::unique_ptr<DeviceGroup> PeerGroupOf(std::vector<std::unique_ptr<CudaDevice>> devices) {
  std::vector<std::unique_ptr<Device>> members;
  for (auto& device : devices) members.push_back(std::move(device));
  return MakePeerGroup(std::move(members));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> CreateCudaGroup(absl::Span<const int> ordinals,
                                                             Precision precision) {
  std::vector<std::unique_ptr<CudaDevice>> devices;
  for (int ordinal : ordinals) {
    ASSIGN_OR_RETURN(auto device, CudaDevice::Create(ordinal, precision));
    devices.push_back(std::move(device));
  }
  if (devices.size() == 1) return PeerGroupOf(std::move(devices));
  const std::string names = absl::StrCat("device cuda:", absl::StrJoin(ordinals, ","));
  auto by_nccl = MakeNcclGroup(&devices);
  if (by_nccl.ok()) {
    LogInfo(names, ": sums gradients by NCCL");
    return by_nccl;
  }
  LogInfo(names, ": sums gradients by copies between the GPUs (NCCL: ", by_nccl.status().message(),
          ")");
  return PeerGroupOf(std::move(devices));
}

}  // namespace keelson
