#include "cli/tensor_source.h"

#include <string>
#include <vector>

#include "cli/element.h"
#include "cli/snapshot_testing.h"
#include "cli/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  return names;
}

TEST(TensorSourceTest, VariablesAreWhatIsNoSlotAndNoCounter) {
  MemoryTensors tensors;
  const Shape shape({2});
  for (const char* name :
       {"w", "w/Adam", "w/Adam_1", "scope/w", "scope/w/Momentum", "global_step", "beta1_power",
        "training/beta2_power", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
        "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE",
        "layer/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"}) {
    tensors.AddValues<float>(name, BundleDtype::kFloat32, shape, {1, 2});
  }
  // Not in the shape of "w", so it is none of its slots.
  tensors.AddValues<float>("w/bias", BundleDtype::kFloat32, Shape({1}), {1});
  EXPECT_THAT(Names(*tensors.Variables()),
              ElementsAre("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", "scope/w", "w", "w/bias"));
}

TEST(TensorSourceTest, ASnapshotSaysWhatItsVariablesAre) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 7);
  auto source = OpenTensorSource(directory);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Names((*source)->List()),
              ElementsAre("beta1_power", "dense/bias", "dense/bias/Momentum", "dense/kernel",
                          "dense/kernel/Momentum", "global_step"));
  EXPECT_THAT(Names(*(*source)->Variables()), ElementsAre("dense/bias", "dense/kernel"));
}

TEST(TensorSourceTest, ABundleWithoutKeelsonsStateIsReadByNames) {
  const std::string prefix = FreshDirectory() + "/tf";
  WriteSmallBundle(prefix);
  auto source = OpenTensorSource(prefix);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Names(*(*source)->Variables()), ElementsAre("b", "w"));
}

TEST(TensorSourceTest, WhatIsNotThereIsNamed) {
  const std::string directory = FreshDirectory();
  for (const char* name : {"/none", "/none.safetensors", "/none.npz", ""}) {
    const absl::Status status = OpenTensorSource(directory + name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(directory + name));
  }
}

template <typename T>
std::string Text(BundleDtype dtype, T value) {
  return ElementText(dtype, reinterpret_cast<const char*>(&value));
}

TEST(ElementTest, TextOfEachType) {
  EXPECT_EQ(Text(BundleDtype::kFloat32, 0.1f), "0.100000001");
  EXPECT_EQ(Text(BundleDtype::kFloat64, 0.1), "0.10000000000000001");
  EXPECT_EQ(Text<uint16_t>(BundleDtype::kFloat16, 0x3e00), "1.5");
  EXPECT_EQ(Text<uint16_t>(BundleDtype::kBfloat16, 0xc040), "-3");
  EXPECT_EQ(Text<int8_t>(BundleDtype::kInt8, -3), "-3");
  EXPECT_EQ(Text<int16_t>(BundleDtype::kInt16, -300), "-300");
  EXPECT_EQ(Text<int32_t>(BundleDtype::kInt32, INT32_MIN), "-2147483648");
  EXPECT_EQ(Text<int64_t>(BundleDtype::kInt64, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(Text<uint8_t>(BundleDtype::kUint8, 255), "255");
  EXPECT_EQ(Text<uint16_t>(BundleDtype::kUint16, 65535), "65535");
  EXPECT_EQ(Text<uint32_t>(BundleDtype::kUint32, UINT32_MAX), "4294967295");
  EXPECT_EQ(Text<uint64_t>(BundleDtype::kUint64, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(Text<uint8_t>(BundleDtype::kBool, 1), "true");
  const float complex64[] = {1, -2};
  EXPECT_EQ(ElementText(BundleDtype::kComplex64, reinterpret_cast<const char*>(complex64)),
            "(1, -2)");
  const double complex128[] = {0.5, 2};
  EXPECT_EQ(ElementText(BundleDtype::kComplex128, reinterpret_cast<const char*>(complex128)),
            "(0.5, 2)");
}

}  // namespace
}  // namespace keelson
