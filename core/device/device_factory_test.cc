#include "core/device/device_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson {
namespace {

using testing::AnyOf;
using testing::StartsWith;

TEST(DeviceFactoryTest, MakesACpuDevice) {
  const auto device = CreateDevice("cpu", {.threads = 1});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_THAT((*device)->name(), StartsWith("cpu"));
}

TEST(DeviceFactoryTest, AutoTakesWhatThereIs) {
  const auto device = CreateDevice("auto");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_THAT((*device)->name(), AnyOf(StartsWith("cpu"), StartsWith("cuda")));
}

TEST(DeviceFactoryTest, CudaIsThereOrSaysWhyNot) {
  const auto device = CreateDevice("cuda");
  if (device.ok()) {
    EXPECT_THAT((*device)->name(), StartsWith("cuda"));
    return;
  }
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(device.status().message()), StartsWith("device cuda: "));
}

TEST(DeviceFactoryTest, RefusesOtherNames) {
  const auto device = CreateDevice("tpu");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device.status().message(), "device: expected cpu, cuda or auto, found \"tpu\"");
}

TEST(DeviceFactoryTest, RefusesANegativeNumberOfThreads) {
  EXPECT_EQ(CreateDevice("cpu", {.threads = -2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
