#include "core/checkpoint/element_conversion.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<float> Converted(BundleDtype dtype, const std::vector<T>& values) {
  // From an odd address.
  std::string bytes(1, '\0');
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  EXPECT_EQ(DtypeSize(dtype), static_cast<int64_t>(sizeof(T)));
  EXPECT_TRUE(IsNumeric(dtype));
  std::vector<float> out(values.size());
  ConvertToFloat(dtype, bytes.data() + 1, absl::MakeSpan(out));
  return out;
}

TEST(ElementConversionTest, FloatingPoint) {
  EXPECT_THAT(Converted<float>(BundleDtype::kFloat32, {1.5f, -0.1f}), ElementsAre(1.5f, -0.1f));
  EXPECT_THAT(Converted<double>(BundleDtype::kFloat64, {0.1, -1e300, 1 + 1e-12}),
              ElementsAre(0.1f, -std::numeric_limits<float>::infinity(), 1.0f));
  // IEEE half: 1, -2, the largest, the smallest subnormal, infinity.
  EXPECT_THAT(Converted<uint16_t>(BundleDtype::kFloat16, {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00}),
              ElementsAre(1.0f, -2.0f, 65504.0f, std::ldexp(1.0f, -24),
                          std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Converted<uint16_t>(BundleDtype::kBfloat16, {0x3f80, 0xc040}),
              ElementsAre(1.0f, -3.0f));
}

TEST(ElementConversionTest, Integers) {
  EXPECT_THAT(Converted<int8_t>(BundleDtype::kInt8, {-128, 127}), ElementsAre(-128, 127));
  EXPECT_THAT(Converted<uint8_t>(BundleDtype::kUint8, {0, 255}), ElementsAre(0, 255));
  EXPECT_THAT(Converted<int16_t>(BundleDtype::kInt16, {-32768, 7}), ElementsAre(-32768, 7));
  EXPECT_THAT(Converted<uint16_t>(BundleDtype::kUint16, {65535, 7}), ElementsAre(65535, 7));
  EXPECT_THAT(Converted<int32_t>(BundleDtype::kInt32, {-16777217, 3}), ElementsAre(-16777216, 3));
  EXPECT_THAT(Converted<uint32_t>(BundleDtype::kUint32, {4294967295u}), ElementsAre(4294967296.0f));
  EXPECT_THAT(Converted<int64_t>(BundleDtype::kInt64, {-5, int64_t{1} << 62}),
              ElementsAre(-5, std::ldexp(1.0f, 62)));
  EXPECT_THAT(Converted<uint64_t>(BundleDtype::kUint64, {~uint64_t{0}}),
              ElementsAre(std::ldexp(1.0f, 64)));
}

TEST(ElementConversionTest, Bool) {
  EXPECT_THAT(Converted<uint8_t>(BundleDtype::kBool, {0, 1}), ElementsAre(0, 1));
}

TEST(ElementConversionTest, WhatIsNoNumber) {
  for (const BundleDtype dtype : {BundleDtype::kString, BundleDtype::kComplex64,
                                  BundleDtype::kComplex128, static_cast<BundleDtype>(21)}) {
    EXPECT_FALSE(IsNumeric(dtype)) << DtypeName(dtype);
  }
}

}  // namespace
}  // namespace keelson
