// int8 and top-k; value_codec_test.cc holds the elementwise formats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "core/wire/value_codec_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// What a receiver makes of an int8 block.
std::vector<float> DecodeInt8(const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> x(n);
  const uint8_t* from = bytes.data();
  for (size_t begin = 0; begin < n; begin += kInt8GroupElements) {
    const size_t size = std::min(n - begin, size_t{kInt8GroupElements});
    float scale;
    std::memcpy(&scale, from, sizeof(scale));
    DecodeInt8Group(scale, from + sizeof(scale), absl::MakeSpan(x).subspan(begin, size));
    from += sizeof(scale) + size;
  }
  return x;
}

std::vector<uint8_t> EncodeInt8(const std::vector<float>& x, std::vector<float>* residual) {
  std::vector<uint8_t> bytes(EncodedBytes(WireFormat::kInt8, static_cast<int64_t>(x.size())));
  keelson::EncodeInt8(x, absl::MakeSpan(*residual), bytes.data());
  return bytes;
}

TEST(Int8Test, EachGroupHasItsScale) {
  std::vector<float> x(2100, 0.5f), residual(2100);
  x[7] = -127;
  x[1024] = 254;
  std::fill(x.begin() + 2048, x.end(), 0.0f);
  ForEachInstructionSet([&] {
    std::fill(residual.begin(), residual.end(), 0.0f);
    const std::vector<float> decoded = DecodeInt8(EncodeInt8(x, &residual), x.size());
    EXPECT_EQ(decoded[7], -127);
    EXPECT_EQ(decoded[0], 0);  // 0.5 to even
    EXPECT_EQ(residual[0], 0.5f);
    EXPECT_EQ(decoded[1024], 254);
    EXPECT_EQ(decoded[2047], 0);  // 0.25
    EXPECT_EQ(decoded[2099], 0);
  });
}

TEST(Int8Test, LosesAtMostHalfAScaleAndKeepsItAsTheResidual) {
  const std::vector<float> x = RandomVector(3000, 6);
  std::vector<float> residual = RandomVector(3000, 7);
  const std::vector<float> before = residual;
  const std::vector<uint8_t> bytes = EncodeInt8(x, &residual);
  const std::vector<float> decoded = DecodeInt8(bytes, x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float sum = x[i] + before[i];
    EXPECT_EQ(residual[i], sum - decoded[i]) << i;
    EXPECT_LE(std::abs(residual[i]), 7.0f / 127 / 2) << i;
  }
}

TEST(Int8Test, AllInstructionSetsGiveTheSameBits) {
  for (const size_t n : {0, 1, 3, 15, 16, 17, 70, 1024, 1025, 5000}) {
    const std::vector<float> x = RandomVector(n, 8), start = RandomVector(n, 9);
    std::vector<float> expected_residual = start;
    const std::vector<uint8_t> expected = EncodeInt8(x, &expected_residual);
    const std::vector<float> expected_values = DecodeInt8(expected, n);
    ForEachInstructionSet([&] {
      std::vector<float> residual = start;
      EXPECT_EQ(EncodeInt8(x, &residual), expected);
      EXPECT_EQ(Bits(residual), Bits(expected_residual));
      EXPECT_EQ(Bits(DecodeInt8(expected, n)), Bits(expected_values));
    });
  }
}

TEST(Int8Test, ErrorFeedbackLosesNothingOverManySteps) {
  const std::vector<float> x = RandomVector(1500, 10);
  std::vector<float> residual(x.size());
  std::vector<double> sum(x.size());
  for (int step = 0; step < 200; ++step) {
    const std::vector<float> decoded = DecodeInt8(EncodeInt8(x, &residual), x.size());
    for (size_t i = 0; i < x.size(); ++i) sum[i] += decoded[i];
  }
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(sum[i] / 200, x[i], 2e-4) << i;
}

TEST(Int8Test, AGroupThatIsNotFiniteBecomesNanAndItsResidualIsCleared) {
  ForEachInstructionSet([&] {
    for (const float bad : {kInf, kNotANumber, -kNotANumber}) {
      for (const size_t at : {size_t{0}, size_t{1023}, size_t{1000}}) {
        std::vector<float> x(1030, 1.0f), residual(1030, 0.25f);
        x[at] = bad;
        const std::vector<float> decoded = DecodeInt8(EncodeInt8(x, &residual), x.size());
        for (size_t i = 0; i < 1024; ++i) {
          EXPECT_TRUE(std::isnan(decoded[i]));
          EXPECT_EQ(residual[i], 0);
        }
        for (size_t i = 1024; i < 1030; ++i) EXPECT_FLOAT_EQ(decoded[i], 1.25f);
      }
    }
  });
}

TEST(Int8Test, ASumThatOverflowsIsNotFinite) {
  std::vector<float> x = {3e38f, 1}, residual = {3e38f, 1};
  EXPECT_TRUE(std::isnan(DecodeInt8(EncodeInt8(x, &residual), 2)[1]));
  EXPECT_THAT(residual, ElementsAre(0, 0));
}

TEST(Int8Test, TheLargestNumberStaysFinite) {
  ForEachInstructionSet([&] {
    std::vector<float> x = {std::numeric_limits<float>::max(), 1}, residual = {0, 0};
    const std::vector<float> decoded = DecodeInt8(EncodeInt8(x, &residual), 2);
    EXPECT_FLOAT_EQ(decoded[0], std::numeric_limits<float>::max());
    EXPECT_TRUE(std::isfinite(residual[0]));
  });
}

TEST(Int8Test, SubnormalsAreNotLost) {
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
  ForEachInstructionSet([&] {
    for (const float magnitude : {1.0f, 63.0f, 64.0f, 100.0f, 190.0f, 1000.0f}) {
      std::vector<float> x(20, 0.0f), residual(20, 0.0f);
      x[3] = x[18] = -magnitude * kSmallest;
      const std::vector<float> decoded = DecodeInt8(EncodeInt8(x, &residual), x.size());
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(decoded[i] + residual[i], x[i]) << i;
    }
  });
}

TEST(Int8Test, DecodesPartsOfAGroupAtAnyAddress) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  ForEachInstructionSet([&] {
    for (size_t begin = 0; begin < 16; ++begin) {
      std::vector<float> x(270);
      DecodeInt8Group(0.5f, bytes.data() + begin, absl::MakeSpan(x));
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(x[i], 0.5f * static_cast<int8_t>(begin + i)) << i;
      }
    }
  });
}

struct TopK {
  std::vector<uint32_t> positions;
  std::vector<float> elements;
};

// Adds a prefix, as a block may follow others.
TopK EncodeTopK(const std::vector<float>& x, int64_t count, std::vector<float>* residual) {
  std::string bytes = "abc";
  keelson::EncodeTopK(x, count, absl::MakeSpan(*residual), &bytes);
  EXPECT_EQ(bytes.size(), 3 + TopKBytes(count));
  EXPECT_EQ(bytes.substr(0, 3), "abc");
  uint32_t written_count;
  std::memcpy(&written_count, bytes.data() + 3, 4);
  EXPECT_EQ(written_count, count);
  TopK top = {std::vector<uint32_t>(written_count), std::vector<float>(written_count)};
  std::memcpy(top.positions.data(), bytes.data() + 7, 4 * written_count);
  std::memcpy(top.elements.data(), bytes.data() + 7 + 4 * written_count, 4 * written_count);
  return top;
}

// The positions of the largest magnitudes, those in front first.
std::vector<uint32_t> ReferenceTop(const std::vector<float>& x, size_t count) {
  std::vector<uint32_t> order(x.size());
  for (size_t i = 0; i < x.size(); ++i) order[i] = static_cast<uint32_t>(i);
  const auto key = [&](uint32_t i) { return std::bit_cast<uint32_t>(std::abs(x[i])); };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

void ExpectTop(const std::vector<float>& x, size_t count) {
  std::vector<float> residual(x.size());
  const TopK top = EncodeTopK(x, static_cast<int64_t>(count), &residual);
  EXPECT_EQ(top.positions, ReferenceTop(x, count));
  std::vector<float> rest = x, elements;
  for (const uint32_t at : top.positions) elements.push_back(std::exchange(rest[at], 0.0f));
  EXPECT_EQ(Bits(top.elements), Bits(elements));
  EXPECT_EQ(Bits(residual), Bits(rest));
}

TEST(TopKTest, KeepsTheLargestMagnitudes) {
  ForEachInstructionSet([&] {
    for (const size_t n : {1, 2, 17, 70, 1000, 9000}) {
      const std::vector<float> x = RandomVector(n, static_cast<uint32_t>(n));
      for (const size_t count : {size_t{1}, (n + 99) / 100, (n + 1) / 2, n}) ExpectTop(x, count);
    }
  });
}

TEST(TopKTest, OfEqualMagnitudesThoseInFrontAreKept) {
  ForEachInstructionSet([&] {
    std::vector<float> x(5000);
    for (size_t i = 0; i < x.size(); ++i) x[i] = (i % 2 == 0 ? 1.0f : -1.0f) * (i % 3 == 0 ? 2 : 1);
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{1667}, size_t{1668}, size_t{4999}}) {
      ExpectTop(x, count);
    }
  });
}

TEST(TopKTest, ZerosAreSentWhenNothingElseIsThere) {
  ExpectTop(std::vector<float>(100, 0.0f), 10);
  ExpectTop({0, 0, 3, 0}, 2);
}

TEST(TopKTest, WhatIsNotFiniteComesFirstAndLeavesNoResidual) {
  ForEachInstructionSet([&] {
    std::vector<float> x(40, 1e30f), residual(40);
    x[5] = kInf;
    x[33] = kNotANumber;
    const TopK one = EncodeTopK(x, 1, &residual);
    EXPECT_THAT(one.positions, ElementsAre(33));
    EXPECT_TRUE(std::isnan(one.elements[0]));
    EXPECT_EQ(residual[33], 0);
    residual.assign(40, 0.0f);
    EXPECT_THAT(EncodeTopK(x, 2, &residual).positions, ElementsAre(5, 33));
    EXPECT_THAT(residual, Each(testing::AnyOf(0.0f, 1e30f)));
  });
}

TEST(TopKTest, TheRestIsSentLater) {
  std::vector<float> residual = {0, 0, 0};
  const std::vector<float> x = {1, 4, 0.75f};
  EXPECT_THAT(EncodeTopK(x, 1, &residual).positions, ElementsAre(1));
  EXPECT_THAT(residual, ElementsAre(1, 0, 0.75f));
  EXPECT_THAT(EncodeTopK({1, 1, 1}, 1, &residual).elements, ElementsAre(2));
  EXPECT_THAT(residual, ElementsAre(0, 1, 1.75f));
}

TEST(TopKTest, RandomBitsOnAllInstructionSets) {
  const std::vector<float> x = RandomBits(20'000, 11);
  ForEachInstructionSet([&] {
    // Adding the residual 0 makes signalling NaNs quiet.
    std::vector<float> sums = x;
    for (float& e : sums) e += 0.0f;
    for (const size_t count : {size_t{10}, size_t{200}, size_t{19'000}}) ExpectTop(sums, count);
  });
}

}  // namespace
}  // namespace keelson
