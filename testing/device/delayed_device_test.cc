#include "absl/strings/str_cat.h"
#include "core/device/cpu/cpu_device.h"
#include "testing/device/conformance/device_conformance.h"
#include "testing/device/delayed_device_testing.h"

namespace keelson {
namespace {

ConformanceDevice Delayed(uint64_t seed) {
  return {absl::StrCat("seed_", seed), [seed](int peer) -> absl::StatusOr<std::unique_ptr<Device>> {
            auto device = CreateCpuDevice(1);
            if (!device.ok()) return device.status();
            return std::make_unique<DelayedDevice>(*std::move(device),
                                                   seed + static_cast<uint64_t>(peer));
          }};
}

INSTANTIATE_TEST_SUITE_P(Delayed, DeviceConformanceTest, testing::Values(Delayed(1), Delayed(2)),
                         ConformanceDevice::NameOf);

}  // namespace
}  // namespace keelson
