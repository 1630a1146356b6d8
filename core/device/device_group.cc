#include "core/device/device_group.h"

#include "absl/strings/str_join.h"

namespace keelson {
namespace {

class PeerGroup : public DeviceGroup {
 public:
  explicit PeerGroup(std::vector<std::unique_ptr<Device>> devices)
      : DeviceGroup(std::move(devices)) {}

  void ReduceToFirst(int64_t n, absl::Span<DeviceMemory* const> memories) override {
    for (size_t replica = 1; replica < size(); ++replica) {
      first()->AddFromPeer(device(replica), n, *memories[replica], memories[0]);
    }
  }
};

}  // namespace

std::string DeviceGroup::name() const {
  return absl::StrJoin(devices_, ", ",
                       [](std::string* text, const auto& device) { *text += device->name(); });
}

std::unique_ptr<DeviceGroup> MakePeerGroup(std::vector<std::unique_ptr<Device>> devices) {
  return std::make_unique<PeerGroup>(std::move(devices));
}

}  // namespace keelson
