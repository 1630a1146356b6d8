#include "core/device/device_group.h"

#include <gmock/gmock.h>

#include "core/device/cpu/cpu_device.h"

namespace keelson {
namespace {

std::unique_ptr<DeviceGroup> CpuGroup(int size) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < size; ++i) devices.push_back(*CreateCpuDevice(1));
  return MakePeerGroup(std::move(devices));
}

TEST(DeviceGroupTest, NamesAllItsDevices) {
  EXPECT_THAT(CpuGroup(2)->name(), testing::MatchesRegex("cpu \\(.*\\), cpu \\(.*\\)"));
}

TEST(DeviceGroupTest, SumsLeadingElementsToTheFirst) {
  for (int size : {1, 2, 3}) {
    const auto group = CpuGroup(size);
    std::vector<std::unique_ptr<DeviceMemory>> memories;
    std::vector<DeviceMemory*> pointers;
    float expected = 0;
    for (int replica = 0; replica < size; ++replica) {
      const float value = static_cast<float>(replica) + 0.5f;
      expected += value;
      memories.push_back(*group->device(replica)->Allocate(3));
      pointers.push_back(memories.back().get());
      group->device(replica)->Fill(value, 3, pointers.back());
    }
    group->ReduceToFirst(2, pointers);
    std::vector<float> sums(3);
    ASSERT_TRUE(group->first()->CopyToHost(*pointers[0], absl::MakeSpan(sums)).ok());
    EXPECT_THAT(sums, testing::ElementsAre(expected, expected, 0.5f)) << size;
  }
}

TEST(DeviceGroupTest, TooSmallAMemoryIsTheFirstDevicesFailure) {
  const auto group = CpuGroup(2);
  const auto first = *group->device(0)->Allocate(4), second = *group->device(1)->Allocate(3);
  DeviceMemory* const memories[] = {first.get(), second.get()};
  group->ReduceToFirst(4, memories);
  const absl::Status status = group->first()->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("AddFromPeer: expected memory of 4 floats, found 3"));
}

}  // namespace
}  // namespace keelson
