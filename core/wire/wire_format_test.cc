#include "core/wire/wire_format.h"

#include <gtest/gtest.h>

#include "keelson/v1/wire_format.pb.h"

namespace keelson {
namespace {

TEST(WireFormatTest, HasTheNumbersAndNamesOfTheProto) {
  EXPECT_EQ(kNumWireFormats, v1::WireFormat_ARRAYSIZE);
  EXPECT_EQ(static_cast<int>(WireFormat::kFloat32), v1::FLOAT32);
  EXPECT_EQ(static_cast<int>(WireFormat::kFloat16), v1::FLOAT16);
  EXPECT_EQ(static_cast<int>(WireFormat::kBfloat16), v1::BFLOAT16);
  EXPECT_EQ(static_cast<int>(WireFormat::kInt8), v1::INT8);
  EXPECT_EQ(static_cast<int>(WireFormat::kTopK), v1::TOP_K);
}

TEST(WireFormatTest, Names) {
  EXPECT_EQ(WireFormatName(WireFormat::kFloat32), "float32");
  EXPECT_EQ(WireFormatName(WireFormat::kFloat16), "float16");
  EXPECT_EQ(WireFormatName(WireFormat::kBfloat16), "bfloat16");
  EXPECT_EQ(WireFormatName(WireFormat::kInt8), "int8");
  EXPECT_EQ(WireFormatName(WireFormat::kTopK), "top_k");
}

TEST(WireFormatTest, Sizes) {
  EXPECT_EQ(EncodedBytes(WireFormat::kFloat32, 5), 20u);
  EXPECT_EQ(EncodedBytes(WireFormat::kFloat16, 5), 10u);
  EXPECT_EQ(EncodedBytes(WireFormat::kBfloat16, 0), 0u);
  EXPECT_EQ(EncodedBytes(WireFormat::kInt8, 1), 5u);
  EXPECT_EQ(EncodedBytes(WireFormat::kInt8, 1024), 1028u);
  EXPECT_EQ(EncodedBytes(WireFormat::kInt8, 1025), 1033u);
  EXPECT_EQ(TopKBytes(3), 28u);
}

TEST(WireFormatTest, Elementwise) {
  EXPECT_TRUE(IsElementwise(WireFormat::kFloat32));
  EXPECT_TRUE(IsElementwise(WireFormat::kFloat16));
  EXPECT_TRUE(IsElementwise(WireFormat::kBfloat16));
  EXPECT_FALSE(IsElementwise(WireFormat::kInt8));
  EXPECT_FALSE(IsElementwise(WireFormat::kTopK));
}

}  // namespace
}  // namespace keelson
