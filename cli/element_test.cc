#include "cli/element.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace keelson {
namespace {

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

TEST(ElementTest, WhatIsNoNumberHereIsShownAsItsBytes) {
  EXPECT_EQ(Text<uint8_t>(BundleDtype::kQuint8, 127), "0x7f");
  EXPECT_EQ(Text<uint8_t>(BundleDtype::kInt4, 10), "0x0a");
}

template <typename T>
long double Value(BundleDtype dtype, T value) {
  return ElementValue(dtype, reinterpret_cast<const char*>(&value));
}

TEST(ElementTest, NumbersOfEachType) {
  EXPECT_EQ(Value(BundleDtype::kFloat32, 0.5f), 0.5);
  EXPECT_EQ(Value(BundleDtype::kFloat64, 0.1), 0.1);
  EXPECT_EQ(Value<uint16_t>(BundleDtype::kFloat16, 0x3e00), 1.5);
  EXPECT_EQ(Value<uint16_t>(BundleDtype::kBfloat16, 0xc040), -3);
  EXPECT_EQ(Value<int8_t>(BundleDtype::kInt8, -3), -3);
  EXPECT_EQ(Value<uint16_t>(BundleDtype::kUint16, 65535), 65535);
  EXPECT_EQ(Value<int32_t>(BundleDtype::kInt32, INT32_MIN), -2147483648.0);
  EXPECT_EQ(Value<uint32_t>(BundleDtype::kUint32, UINT32_MAX), 4294967295.0);
  EXPECT_EQ(Value<uint64_t>(BundleDtype::kUint64, UINT64_MAX), 18446744073709551615.0L);
  EXPECT_EQ(Value<int64_t>(BundleDtype::kInt64, (int64_t{1} << 53) + 1), 9007199254740993.0L);
  EXPECT_EQ(Value<uint8_t>(BundleDtype::kBool, 1), 1);
}

}  // namespace
}  // namespace keelson
