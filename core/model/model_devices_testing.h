// Shared code of tests of models on several kinds of devices; for programs with the emulated GPU.
#ifndef KEELSON_CORE_MODEL_MODEL_DEVICES_TESTING_H_
#define KEELSON_CORE_MODEL_MODEL_DEVICES_TESTING_H_

#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device_group.h"
#include "core/model/model_testing.h"
#include "testing/device/cuda_emulation/emulation.h"

namespace keelson {

// The parameter is MakeTestDevice's `name`. Each test, and its part after SetOrder, has new
// emulated GPUs; at the end they must hold nothing, and must have seen no illegal call.
class ModelOnDevicesTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SetOrder(1); }
  void TearDown() override {
    EXPECT_EQ(cuda_emulation::Leaks(), "");
    EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
  }

  // Enough seeds to find missing waits; more would be slow on the emulated GPU.
  static std::vector<uint64_t> Orders() {
    if (std::string(GetParam()) == "cuda") return {1, 2, 3};
    return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  }
  // Sets the order of independent work. No device may exist.
  void SetOrder(uint64_t seed) {
    order_ = seed;
    cuda_emulation::Options options;
    options.gpus = 3;
    options.order_seed = seed;
    EXPECT_EQ(cuda_emulation::Reset(options), "");
  }

  std::unique_ptr<Device> NewDevice() const { return MakeTestDevice(GetParam(), order_); }
  std::unique_ptr<DeviceGroup> NewGroup(int size) const {
    if (std::string(GetParam()) == "cuda") {
      const char* const names[] = {"cuda:0", "cuda:0,1", "cuda:0,1,2"};
      auto group = CreateDevices(names[size - 1]);
      EXPECT_TRUE(group.ok()) << group.status();
      return *std::move(group);
    }
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < size; ++i) {
      devices.push_back(MakeTestDevice(GetParam(), order_ + static_cast<uint64_t>(i)));
    }
    return MakePeerGroup(std::move(devices));
  }

 private:
  uint64_t order_ = 1;
};

inline auto AllTestDevices() { return testing::Values("cpu", "delayed", "cuda"); }
inline std::string TestDeviceName(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_MODEL_DEVICES_TESTING_H_
