#include "core/device/cpu/cpu_device.h"

#include "core/device/device_conformance.h"

namespace keelson {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OneThread() { return CreateCpuDevice(1); }

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest, testing::Values(&OneThread));

#if !defined(__SANITIZE_THREAD__)  // which does not see the synchronisation of OpenMP's threads
absl::StatusOr<std::unique_ptr<Device>> TwoThreads() { return CreateCpuDevice(2); }
INSTANTIATE_TEST_SUITE_P(CpuTwoThreads, DeviceConformanceTest, testing::Values(&TwoThreads));
#endif

TEST(CpuDeviceTest, NamesItsLibraryAndThreads) {
  EXPECT_THAT((*CreateCpuDevice(1))->name(), testing::MatchesRegex("cpu .oneDNN .*, 1 thread."));
  EXPECT_THAT((*CreateCpuDevice(3))->name(), testing::MatchesRegex("cpu .oneDNN .*, 3 threads."));
}

TEST(CpuDeviceTest, RefusesANegativeNumberOfThreads) {
  const auto device = CreateCpuDevice(-1);
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device.status().message(), "device cpu: threads: expected >= 0, found -1");
}

TEST(CpuDeviceTest, AnImpossibleConvolutionIsOneDnnsError) {
  const auto device = *CreateCpuDevice(1);
  const auto memory = *device->Allocate(1000);
  // A kernel of 3 does not fit 4 times into 3 rows.
  const ConvGeometry geometry{1, 3, 3, 1, 4, 4, 1, 3, 1, -5, -5};
  const auto y = *device->Allocate(1000);
  device->Conv2D(geometry, *memory, *memory, y.get());
  EXPECT_EQ(device->Synchronize().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(device->Synchronize().message()),
              testing::StartsWith("device cpu: Conv2D: oneDNN: "));
}

TEST(CpuDeviceTest, ForgetsTheOldestOfManyGeometries) {
  const auto device = *CreateCpuDevice(1);
  const auto filter = *device->Allocate(9);
  device->Fill(1, 9, filter.get());
  const auto x = *device->Allocate(100 * 9), y = *device->Allocate(100);
  device->Fill(1, 900, x.get());
  for (int round = 0; round < 2; ++round) {
    for (int64_t batch = 1; batch <= 100; ++batch) {
      device->Fill(0, 100, y.get());
      device->Conv2D({batch, 3, 3, 1, 1, 1, 1, 3, 1, 0, 0}, *x, *filter, y.get());
      std::vector<float> values(static_cast<size_t>(batch));
      ASSERT_TRUE(device->CopyToHost(*y, absl::MakeSpan(values)).ok());
      ASSERT_EQ(values, std::vector<float>(static_cast<size_t>(batch), 9.0f));
    }
  }
}

}  // namespace
}  // namespace keelson
