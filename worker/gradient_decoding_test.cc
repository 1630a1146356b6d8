#include "worker/gradient_decoding.h"

#include <cstring>
#include <string>

#include "core/wire/value_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

std::vector<float> Decoded(const WireLayout& layout, const std::vector<uint8_t>& bytes,
                           std::vector<float> before = {}) {
  EXPECT_EQ(bytes.size(), layout.bytes);
  DecodeGradient(layout, bytes.data(), &before);
  return before;
}

TEST(DecodeGradient, ElementwiseFormatsBlockByBlock) {
  const std::vector<float> elements = {1, -2.5f, 0.125f, 3, -0.0f};
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    const size_t offset = format == WireFormat::kFloat32 ? 12 : 8;  // a multiple of 4
    WireLayout layout{format, {{0, 3, 0}, {3, 2, offset}}, 5, offset + EncodedBytes(format, 2)};
    std::vector<uint8_t> bytes(layout.bytes, 0xff);
    EncodeElements(format, absl::MakeSpan(elements).first(3), bytes.data());
    EncodeElements(format, absl::MakeSpan(elements).subspan(3), bytes.data() + offset);
    EXPECT_THAT(Decoded(layout, bytes), ElementsAreArray(elements)) << WireFormatName(format);
  }
}

TEST(DecodeGradient, Int8GroupsHaveScalesOfTheirOwn) {
  constexpr int64_t kElements = kInt8GroupElements + 3;
  const WireLayout layout = WholeArrayLayout(WireFormat::kInt8, kElements);
  std::vector<float> elements(kElements, 127.0f);
  elements[1] = -127;
  elements[2] = 5;
  // The second group.
  elements[kInt8GroupElements] = 0.5f * 127;
  elements[kInt8GroupElements + 1] = -0.5f;
  elements[kInt8GroupElements + 2] = 0;
  std::vector<float> residual(kElements);
  std::vector<uint8_t> bytes(layout.bytes);
  EncodeInt8(elements, absl::MakeSpan(residual), bytes.data());
  EXPECT_THAT(Decoded(layout, bytes), ElementsAreArray(elements));
  EXPECT_THAT(residual, Each(0)) << "they are multiples of the scales";
}

TEST(DecodeGradient, WhatTopKLeavesOutIsZero) {
  const std::vector<float> elements = {0.5f, -4, 1, /**/ 7, 2};
  std::vector<float> residual(elements.size());
  const WireLayout layout{
      WireFormat::kTopK, {{0, 3, 0, 2}, {3, 2, TopKBytes(2), 1}}, 5, TopKBytes(2) + TopKBytes(1)};
  std::string bytes;
  EncodeTopK(absl::MakeSpan(elements).first(3), 2, absl::MakeSpan(residual).first(3), &bytes);
  EncodeTopK(absl::MakeSpan(elements).subspan(3), 1, absl::MakeSpan(residual).subspan(3), &bytes);
  EXPECT_THAT(Decoded(layout, {bytes.begin(), bytes.end()}, {9, 9, 9, 9, 9, 9, 9}),
              ElementsAre(0, -4, 1, 7, 0));
}

TEST(DecodeGradient, AnotherGradientMayBeLonger) {
  const WireLayout layout = WholeArrayLayout(WireFormat::kFloat32, 2);
  EXPECT_THAT(Decoded(layout, std::vector<uint8_t>(8), {1, 2, 3}), SizeIs(2));
}

}  // namespace
}  // namespace keelson
