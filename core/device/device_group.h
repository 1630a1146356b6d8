// Devices of one process that compute replicas of one model.
#ifndef KEELSON_CORE_DEVICE_DEVICE_GROUP_H_
#define KEELSON_CORE_DEVICE_DEVICE_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/device/device.h"

namespace keelson {

// Owns its devices, one or more of one kind. Used by one thread at a time.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;

  Device* first() const { return devices_.front().get(); }
  size_t size() const { return devices_.size(); }
  // `replica` from 0 to size() - 1.
  Device* device(size_t replica) const { return devices_[replica].get(); }
  // The names of all devices, joined by ", ".
  std::string name() const;

  // The `n` leading elements of memories[0] become the sums over the replicas, each of which gives
  // one memory; those of the others become undefined. This is an operation on every device, in its
  // order of calls.
  virtual void ReduceToFirst(int64_t n, absl::Span<DeviceMemory* const> memories) = 0;

 protected:
  explicit DeviceGroup(std::vector<std::unique_ptr<Device>> devices)
      : devices_(std::move(devices)) {}

 private:
  const std::vector<std::unique_ptr<Device>> devices_;
};

// Sums by Device::AddFromPeer, in the order of the replicas.
std::unique_ptr<DeviceGroup> MakePeerGroup(std::vector<std::unique_ptr<Device>> devices);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_DEVICE_GROUP_H_
