#include "core/wire/value_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ios>
#include <limits>

#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr WireFormat kElementwise[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                       WireFormat::kBfloat16};

std::vector<uint8_t> Encode(WireFormat format, const std::vector<float>& x) {
  std::vector<uint8_t> bytes(EncodedBytes(format, static_cast<int64_t>(x.size())));
  EncodeElements(format, x, bytes.data());
  return bytes;
}

std::vector<float> Decode(WireFormat format, const uint8_t* bytes, size_t n) {
  std::vector<float> x(n);
  DecodeElements(format, bytes, absl::MakeSpan(x));
  return x;
}

std::vector<uint16_t> EncodeShorts(WireFormat format, const std::vector<float>& x) {
  const std::vector<uint8_t> bytes = Encode(format, x);
  std::vector<uint16_t> shorts(x.size());
  std::memcpy(shorts.data(), bytes.data(), bytes.size());
  return shorts;
}

// The formats as IEEE 754 and their definitions have them, in double precision.
struct ShortFloat {
  WireFormat format;
  int fraction_bits, bias;
  uint16_t infinity;
};
constexpr ShortFloat kHalf = {WireFormat::kFloat16, 10, 15, 0x7c00};
constexpr ShortFloat kBfloat = {WireFormat::kBfloat16, 7, 127, 0x7f80};

double ReferenceValue(const ShortFloat& f, uint16_t bits) {
  const int magnitude = bits & 0x7fff, exponent = magnitude >> f.fraction_bits;
  const int fraction = magnitude & ((1 << f.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (magnitude == f.infinity) return sign * kInfinity;
  if (magnitude > f.infinity) return kNan;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - f.bias - f.fraction_bits);
  return sign * std::ldexp(fraction + (1 << f.fraction_bits), exponent - f.bias - f.fraction_bits);
}

// Nearest, ties to even. Not for NaNs.
uint16_t ReferenceBits(const ShortFloat& f, float x) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const double magnitude = std::abs(double{x});
  const int exponent = magnitude == 0 ? 1 - f.bias : std::max(1 - f.bias, std::ilogb(magnitude));
  if (std::isinf(magnitude)) return sign | f.infinity;
  // In last places; nearbyint rounds ties to even.
  const double places = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));
  const auto implicit_one = int64_t{1} << f.fraction_bits;
  const int64_t bits =
      (int64_t{exponent + f.bias - 1} << f.fraction_bits) + static_cast<int64_t>(places);
  EXPECT_LE(static_cast<int64_t>(places), 2 * implicit_one);
  return sign | static_cast<uint16_t>(std::min<int64_t>(bits, f.infinity));
}

// All values of the short format, the float32 values halfway to the next, and their neighbours.
std::vector<float> BorderValues(const ShortFloat& f) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < f.infinity; ++bits) {
    const double value = ReferenceValue(f, static_cast<uint16_t>(bits));
    const double next = bits + 1 == f.infinity
                            ? std::ldexp(1.0, f.infinity / (1 << f.fraction_bits) - f.bias)
                            : ReferenceValue(f, static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((value + next) / 2);
    for (const float e : {static_cast<float>(value), middle, std::nextafter(middle, 0.0f),
                          std::nextafter(middle, kInfinity)}) {
      x.push_back(e);
      x.push_back(-e);
    }
  }
  return x;
}

class ShortFloatTest : public testing::TestWithParam<ShortFloat> {};

TEST_P(ShortFloatTest, DecodesEveryBitPattern) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  ForEachInstructionSet([&] {
    const std::vector<float> x =
        Decode(GetParam().format, reinterpret_cast<const uint8_t*>(all.data()), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const double expected = ReferenceValue(GetParam(), all[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(x[i])) << i;
      } else {
        ASSERT_EQ(x[i], expected) << i;
      }
      ASSERT_EQ(std::signbit(x[i]), i >= 0x8000) << i;
    }
  });
}

TEST_P(ShortFloatTest, EncodingWhatWasDecodedIsTheSameBits) {
  std::vector<uint16_t> all(65536), expected(65536);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<uint16_t>(i);
    const bool nan = (i & 0x7fff) > GetParam().infinity;
    // NaNs come out quiet: the fraction's first bit is set.
    const auto quiet = static_cast<uint16_t>(1 << (GetParam().fraction_bits - 1));
    expected[i] = nan ? all[i] | quiet : all[i];
  }
  ForEachInstructionSet([&] {
    const std::vector<float> x =
        Decode(GetParam().format, reinterpret_cast<const uint8_t*>(all.data()), all.size());
    EXPECT_EQ(EncodeShorts(GetParam().format, x), expected);
  });
}

TEST_P(ShortFloatTest, RoundsToNearestTiesToEven) {
  std::vector<float> x = RandomBits(1'000'000, 1);
  for (const float e : BorderValues(GetParam())) x.push_back(e);
  for (const float e : {0.0f, -0.0f, kInfinity, -kInfinity, 65504.0f, 65519.996f, 65520.0f,
                        std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
                        std::ldexp(1.0f, -25), std::ldexp(1.0f, -24), std::ldexp(1.0f, -14)}) {
    x.push_back(e);
  }
  ForEachInstructionSet([&] {
    const std::vector<uint16_t> shorts = EncodeShorts(GetParam().format, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_GT(shorts[i] & 0x7fff, GetParam().infinity) << i;
      } else {
        ASSERT_EQ(shorts[i], ReferenceBits(GetParam(), x[i])) << std::hexfloat << x[i];
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, ShortFloatTest, testing::Values(kHalf, kBfloat),
                         [](const testing::TestParamInfo<ShortFloat>& info) {
                           return std::string(
                               info.param.format == WireFormat::kFloat16 ? "Float16" : "Bfloat16");
                         });

TEST(InstructionSetsTest, ThereAreSeveralOnX86) {
#if HWY_ARCH_X86
  EXPECT_GT(hwy::SupportedAndGeneratedTargets().size(), 1u);
#endif
}

TEST(ElementsTest, AllInstructionSetsGiveTheSameBits) {
  const std::vector<float> x = RandomBits(10'007, 2);
  for (const WireFormat format : kElementwise) {
    const std::vector<uint8_t> encoded = Encode(format, x);
    const std::vector<float> decoded = Decode(format, encoded.data(), x.size());
    ForEachInstructionSet([&] {
      EXPECT_EQ(Encode(format, x), encoded);
      EXPECT_EQ(Bits(Decode(format, encoded.data(), x.size())), Bits(decoded));
    });
  }
}

TEST(ElementsTest, Float32IsTheBytesThemselves) {
  const std::vector<float> x = RandomBits(100, 3);
  EXPECT_EQ(std::memcmp(Encode(WireFormat::kFloat32, x).data(), x.data(), 400), 0);
  EXPECT_EQ(Bits(Decode(WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(x.data()), 100)),
            Bits(x));
}

TEST(ElementsTest, NothingIsReadOrWrittenForNoElements) {
  for (const WireFormat format : kElementwise) {
    EncodeElements(format, {}, nullptr);
    DecodeElements(format, nullptr, {});
    EXPECT_TRUE(AllFinite(format, nullptr, 0));
  }
}

TEST(ElementsTest, AnySizeAtAnyAddress) {
  const std::vector<float> x = RandomVector(70, 4);
  for (const WireFormat format : kElementwise) {
    const std::vector<uint8_t> whole = Encode(format, x);
    const std::vector<float> decoded = Decode(format, whole.data(), x.size());
    ForEachInstructionSet([&] {
      for (size_t n = 0; n <= x.size(); ++n) {
        const size_t offset = n % 16, size = n * ElementBytes(format);
        // One byte more than needed, to see that it stays as it is.
        std::vector<uint8_t> bytes(offset + size + 1, 0xa5);
        EncodeElements(format, absl::MakeConstSpan(x).first(n), bytes.data() + offset);
        EXPECT_EQ(std::memcmp(bytes.data() + offset, whole.data(), size), 0) << n;
        EXPECT_EQ(bytes.back(), 0xa5);
        EXPECT_EQ(Decode(format, bytes.data() + offset, n),
                  std::vector<float>(decoded.begin(), decoded.begin() + static_cast<ptrdiff_t>(n)));
      }
    });
  }
}

TEST(ElementsTest, EveryOffset) {
  const std::vector<float> x = RandomVector(69, 5);
  for (const WireFormat format : kElementwise) {
    const std::vector<uint8_t> whole = Encode(format, x);
    ForEachInstructionSet([&] {
      for (size_t offset = 0; offset < 16; ++offset) {
        std::vector<uint8_t> bytes(offset + whole.size());
        EncodeElements(format, x, bytes.data() + offset);
        EXPECT_EQ(std::memcmp(bytes.data() + offset, whole.data(), whole.size()), 0);
        EXPECT_TRUE(AllFinite(format, bytes.data() + offset, 69));
        EXPECT_EQ(Decode(format, bytes.data() + offset, 69), Decode(format, whole.data(), 69));
      }
    });
  }
}

TEST(AllFiniteTest, FindsOneElementAnywhere) {
  for (const WireFormat format : kElementwise) {
    ForEachInstructionSet([&] {
      for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
        for (size_t at = 0; at < 70; ++at) {
          std::vector<float> x(70, -1.5f);
          EXPECT_TRUE(AllFinite(format, Encode(format, x).data(), 70));
          x[at] = bad;
          EXPECT_FALSE(AllFinite(format, Encode(format, x).data(), 70)) << at;
          EXPECT_TRUE(AllFinite(format, Encode(format, x).data(), static_cast<int64_t>(at)));
        }
      }
    });
  }
}

TEST(AllFiniteTest, TheLargestNumbersAreFinite) {
  const float largest[] = {std::numeric_limits<float>::max(), 65504.0f,
                           std::bit_cast<float>(0x7f7f0000u)};
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> x(33, -largest[i]);
    EXPECT_TRUE(AllFinite(kElementwise[i], Encode(kElementwise[i], x).data(), 33));
  }
}

}  // namespace
}  // namespace keelson
