#include "core/device/cpu/cpu_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

ConformanceDevice WithThreads(int threads) {
  return {absl::StrCat(threads, "_threads"), [threads](int) { return CreateCpuDevice(threads); }};
}

#if defined(__SANITIZE_THREAD__)  // which does not see the synchronisation of OpenMP's threads
INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest, testing::Values(WithThreads(1)),
                         ConformanceDevice::NameOf);
#else
INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformanceTest,
                         testing::Values(WithThreads(1), WithThreads(2)),
                         ConformanceDevice::NameOf);
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

TEST(CpuDeviceTest, IsNotAsynchronous) { EXPECT_FALSE((*CreateCpuDevice(1))->asynchronous()); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators abort
TEST(CpuDeviceTest, OutOfMemorySaysForWhatAndDoesNotLast) {
  constexpr int64_t kFloats = int64_t{1} << 58;
  const auto device = *CreateCpuDevice(1);
  for (const auto& [status, what] : std::vector<std::pair<absl::Status, std::string>>{
           {device->Allocate(kFloats).status(), "288230376151711744 floats"},
           {device->AllocateHost(kFloats).status(), "288230376151711744 bytes of the host"},
           {device->NewGradientEncoder(WholeArrayLayout(WireFormat::kInt8, kFloats)).status(),
            "the error feedback of 288230376151711744 floats"}}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(status.message(), absl::StrCat("device cpu: out of memory allocating ", what));
  }
  EXPECT_TRUE(device->Allocate(10).ok());
  EXPECT_TRUE(device->Synchronize().ok());
}
#endif

TEST(CpuDeviceTest, AnImpossibleConvolutionIsOneDnnsError) {
  const auto device = *CreateCpuDevice(1);
  const auto memory = *device->Allocate(1000);
  // A kernel of 3 does not fit 4 times into 3 rows.
  const ConvGeometry geometry{1, 3, 3, 1, 4, 4, 1, 3, 1, -5, -5};
  const auto y = *device->Allocate(1000);
  device->Conv2D(geometry, *memory, *memory, {}, y.get());
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
      device->Conv2D({batch, 3, 3, 1, 1, 1, 1, 3, 1, 0, 0}, *x, *filter, {}, y.get());
      std::vector<float> values(batch);
      ASSERT_TRUE(device->CopyToHost(*y, absl::MakeSpan(values)).ok());
      ASSERT_EQ(values, std::vector<float>(batch, 9.0f));
    }
  }
}

}  // namespace
}  // namespace keelson
