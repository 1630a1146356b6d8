#include "core/device/factory/device_factory.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

bool HasGpu() { return CreateDevice("cuda").ok(); }

TEST(DeviceFactoryTest, MakesACpuDevice) {
  const auto device = CreateDevice("cpu", {.threads = 1});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_THAT((*device)->name(), StartsWith("cpu"));
}

TEST(DeviceFactoryTest, MakesAGroupOfOne) {
  const auto group = CreateDevices("cpu", {.threads = 1});
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ((*group)->size(), 1);
  EXPECT_EQ((*group)->first(), (*group)->device(0));
  EXPECT_EQ((*group)->name(), (*group)->first()->name());
}

TEST(DeviceFactoryTest, AutoTakesWhatThereIsAndSaysWhy) {
  testing::internal::CaptureStderr();
  const auto device = CreateDevice("auto", {.threads = 1, .precision = Precision::kTf32});
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(device.ok()) << device.status();
  if (HasGpu()) {
    EXPECT_THAT((*device)->name(), StartsWith("cuda:0"));
    return;
  }
  EXPECT_THAT((*device)->name(), StartsWith("cpu"));
  EXPECT_THAT(log,
              AllOf(HasSubstr("device auto: no CUDA device: "), HasSubstr("; using cpu (oneDNN"),
                    HasSubstr(", which computes in float32\n")));
}

TEST(DeviceFactoryTest, CudaIsThereOrSaysWhyNot) {
  for (const char* name : {"cuda", "cuda:0"}) {
    const auto device = CreateDevice(name);
    if (device.ok()) {
      EXPECT_THAT((*device)->name(), StartsWith("cuda:0"));
      continue;
    }
    EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(device.status().message()),
                StartsWith("device cuda: no CUDA device: "));
  }
}

TEST(DeviceFactoryTest, ThereAreNotThatManyGpus) {
  for (const char* name : {"cuda:1000", "cuda:0,1000"}) {
    const absl::Status status = CreateDevices(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("device cuda: no CUDA device: "));
  }
}

TEST(DeviceFactoryTest, RefusesOtherNames) {
  for (const char* name : {"tpu", "", "CPU", "cpu:0", "auto:0", "cuda:", "cuda0", "cuda:x",
                           "cuda:-1", "cuda:0,", "cuda:,1", "cuda:1.5", "cuda:99999999999"}) {
    const std::string expected =
        absl::StrCat("device: expected cpu, cuda, cuda:N[,N...] or auto, found \"", name, "\"");
    for (const absl::Status& status : {CreateDevice(name).status(), CreateDevices(name).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
      EXPECT_EQ(status.message(), expected);
    }
  }
}

TEST(DeviceFactoryTest, GpusOfAGroupAreDifferent) {
  const absl::Status status = CreateDevices("cuda:0,2,0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "device: expected different GPUs, found \"cuda:0,2,0\"");
}

TEST(DeviceFactoryTest, OneDeviceIsNotSeveralGpus) {
  const absl::Status status = CreateDevice("cuda:0,1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "device: expected one GPU, found \"cuda:0,1\"");
}

TEST(DeviceFactoryTest, TheCpuComputesInFloat32) {
  for (Precision precision : {Precision::kTf32, Precision::kBfloat16}) {
    const absl::Status status = CreateDevices("cpu", {.precision = precision}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("precision: expected float32 on the device cpu, found ",
                           PrecisionName(precision)));
  }
}

TEST(DeviceFactoryTest, RefusesANegativeNumberOfThreads) {
  EXPECT_EQ(CreateDevice("cpu", {.threads = -2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
