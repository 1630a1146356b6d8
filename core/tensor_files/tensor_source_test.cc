#include "core/tensor_files/tensor_source.h"

#include "core/base/fresh_directory_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_THAT(NamesOf(*tensors.Variables()),
              ElementsAre("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", "scope/w", "w", "w/bias"));
}

TEST(TensorSourceTest, PartsAreReadWhereTheFormatHasThem) {
  MemoryTensors tensors;
  tensors.AddValues<float>("w", BundleDtype::kFloat32, Shape({2}), {1, 2});
  EXPECT_FALSE(tensors.reads_parts());
  float value = 0;
  EXPECT_EQ(tensors.ReadFloats("w", 0, absl::MakeSpan(&value, 1)).code(),
            absl::StatusCode::kUnimplemented);
}

TEST(TensorSourceTest, WhatIsNotThereIsNamed) {
  const std::string directory = FreshDirectory();
  for (const char* name : {"/none", "/none.safetensors", "/none.npz", ""}) {
    const absl::Status status = OpenTensorSource(directory + name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(directory + name));
  }
}

}  // namespace
}  // namespace keelson
