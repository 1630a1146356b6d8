#include "core/device/cuda/kernels/wire_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <ostream>
#include <vector>

#include "core/wire/value_codec.h"
#include "core/wire/value_codec_testing.h"

namespace keelson::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<uint16_t> Encoded(WireFormat format, const std::vector<float>& x) {
  std::vector<uint16_t> codes(x.size());
  EncodeElements(format, x, reinterpret_cast<uint8_t*>(codes.data()));
  return codes;
}

// Around each change of a float16's exponent, where rounding carries, and of its subnormals.
std::vector<float> Borders() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          kInfinity,
                          -kInfinity,
                          FloatOf(0x7f800001u),
                          FloatOf(0xffffffffu),
                          65504.0f,
                          65519.99f,
                          65520.0f,
                          65536.0f,
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::min()};
  for (uint32_t exponent = 95; exponent < 150; ++exponent) {
    for (uint32_t mantissa : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u,
                              0x7fefffu, 0x7ff000u, 0x7ff001u, 0x7fffffu}) {
      x.push_back(FloatOf(exponent << 23 | mantissa));
      x.push_back(FloatOf(0x80000000u | exponent << 23 | mantissa));
    }
  }
  return x;
}

TEST(WireMathTest, EncodesShortFormatsAsTheCodec) {
  for (const std::vector<float>& x : {Borders(), RandomBits(100000, 1), RandomVector(1000, 2)}) {
    const auto halves = Encoded(WireFormat::kFloat16, x);
    const auto bfloats = Encoded(WireFormat::kBfloat16, x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(ToFloat16(x[i]), halves[i]) << std::hex << BitsOf(x[i]);
      ASSERT_EQ(ToBfloat16(x[i]), bfloats[i]) << std::hex << BitsOf(x[i]);
    }
  }
}

TEST(WireMathTest, DecodesEveryShortCodeAsTheCodec) {
  std::vector<uint16_t> codes;
  for (uint32_t code = 0; code < 1u << 16; ++code) codes.push_back(static_cast<uint16_t>(code));
  std::vector<float> halves(codes.size()), bfloats(codes.size());
  const auto* const bytes = reinterpret_cast<const uint8_t*>(codes.data());
  DecodeElements(WireFormat::kFloat16, bytes, absl::MakeSpan(halves));
  DecodeElements(WireFormat::kBfloat16, bytes, absl::MakeSpan(bfloats));
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(BitsOf(FromFloat16(codes[i])), BitsOf(halves[i])) << i;
    ASSERT_EQ(BitsOf(FromBfloat16(codes[i])), BitsOf(bfloats[i])) << i;
  }
}

TEST(WireMathTest, EncodesInt8AsTheCodec) {
  for (float factor : {1.0f, 1e-44f, 1e-40f, 1e-38f, 1e30f, 5e37f}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      std::vector<float> x = RandomVector(64, seed);
      for (float& value : x) value = value * factor + 0.0f;  // no -0, which the sum removes
      std::vector<float> residual(x.size(), 0.0f);
      std::vector<uint8_t> bytes(EncodedBytes(WireFormat::kInt8, 64));
      EncodeInt8(x, absl::MakeSpan(residual), bytes.data());
      uint32_t largest = 0;
      for (float value : x) largest = std::max(largest, MagnitudeBits(value));
      const float scale = Int8Scale(largest);
      float expected_scale;
      std::memcpy(&expected_scale, bytes.data(), sizeof(expected_scale));
      ASSERT_EQ(BitsOf(scale), BitsOf(expected_scale)) << factor;
      for (size_t i = 0; i < x.size(); ++i) {
        const Int8Element element = ToInt8(x[i], scale);
        ASSERT_EQ(static_cast<uint8_t>(element.code), bytes[4 + i]) << factor;
        ASSERT_EQ(BitsOf(element.residual), BitsOf(residual[i])) << factor;
      }
    }
  }
}

TEST(WireMathTest, TheLargestFloatDoesNotDecodeAsInfinite) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(IsFinite(Int8Scale(BitsOf(largest)) * 127.0f));
}

TEST(WireMathTest, AGroupThatIsNotFiniteIsNanAndLeavesNothing) {
  EXPECT_EQ(BitsOf(Int8Scale(kInfinityBits)), 0x7fc00000u);
  EXPECT_EQ(BitsOf(Int8Scale(0x7fffffffu)), 0x7fc00000u);
  const Int8Element element = ToInt8(3.0f, Int8Scale(kInfinityBits));
  EXPECT_EQ(element.code, 0);
  EXPECT_EQ(element.residual, 0.0f);
}

TEST(WireMathTest, AGroupOfZerosKeepsWhatItHas) {
  const Int8Element element = ToInt8(FloatOf(3), Int8Scale(3));  // 3 / 127 of the smallest is 0
  EXPECT_EQ(element.code, 0);
  EXPECT_EQ(BitsOf(element.residual), 3u);
}

TEST(WireMathTest, MakesTheNanOfTheCpu) {
  EXPECT_EQ(BitsOf(NanOfSum(FloatOf(0x7f800123u), 1.0f)), 0x7fc00123u);
  EXPECT_EQ(BitsOf(NanOfSum(1.0f, FloatOf(0xff800123u))), 0xffc00123u);
  EXPECT_EQ(BitsOf(NanOfSum(FloatOf(0x7fc00001u), FloatOf(0x7fc00002u))), 0x7fc00001u);
  EXPECT_EQ(BitsOf(NanOfSum(kInfinity, -kInfinity)), 0xffc00000u);
}

TEST(WireMathTest, AddsTheResidual) {
  EXPECT_EQ(WithResidual(1.5f, 2.0f), 3.5f);
  EXPECT_EQ(BitsOf(WithResidual(FloatOf(0x7f800123u), 1.0f)), 0x7fc00123u);
  EXPECT_EQ(BitsOf(WithResidual(kInfinity, -kInfinity)), 0xffc00000u);
}

TEST(WireMathTest, TellsFiniteNumbers) {
  EXPECT_TRUE(IsFinite(std::numeric_limits<float>::max()));
  EXPECT_FALSE(IsFinite(-kInfinity));
  EXPECT_FALSE(IsFinite(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(IsNan(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(IsNan(kInfinity));
}

}  // namespace
}  // namespace keelson::cuda
