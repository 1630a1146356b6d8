#include "ps_server/units/value_payload.h"

#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

BlockContentRef ContentOf(int64_t elements, uint64_t seed) {
  auto* content = new BlockContent(elements, 0);
  for (int64_t e = 0; e < elements; ++e) content->values.data()[e] = TestGradient(0, e, seed);
  return BlockContentRef(content);
}

std::string Encoded(const BlockContent& content, WireFormat format) {
  return EncodeGradient(format, {content.values.span().begin(), content.values.span().end()});
}

TEST(ValuePayloadTest, LargeFloat32BlocksAreSentInPlace) {
  const BlockContentRef content = ContentOf(10'000, 1);
  ValuePayload payload;
  payload.Add(content, WireFormat::kFloat32);
  EXPECT_EQ(payload.size(), 40'000u);
  const ByteRope message = std::move(payload).Finish("header");
  ASSERT_EQ(message.fragments().size(), 2u);
  EXPECT_EQ(message.fragments()[1].data, reinterpret_cast<const uint8_t*>(content->values.data()));
}

TEST(ValuePayloadTest, HoldsABlockUntilItsFragmentIsReleased) {
  BlockContentRef content = ContentOf(10'000, 1);
  ValuePayload payload;
  payload.Add(content, WireFormat::kFloat32);
  ByteRope message = std::move(payload).Finish("header");
  EXPECT_EQ(content.Mutable(), nullptr);
  message = ByteRope();
  EXPECT_NE(content.Mutable(), nullptr);
}

TEST(ValuePayloadTest, OtherFormatsAndSmallBlocksAreNotHeld) {
  BlockContentRef large = ContentOf(10'000, 1);
  BlockContentRef small = ContentOf(10, 1);
  ValuePayload payload;
  payload.Add(large, WireFormat::kFloat16);
  payload.Add(small, WireFormat::kFloat32);
  EXPECT_NE(large.Mutable(), nullptr);
  EXPECT_NE(small.Mutable(), nullptr);
}

TEST(ValuePayloadTest, SmallBlocksAloneJoinTheHeader) {
  ValuePayload payload;
  std::string expected = "header";
  for (uint64_t b = 0; b < 5; ++b) {
    const BlockContentRef content = ContentOf(100, b);
    payload.Add(content, WireFormat::kFloat32);
    expected += Encoded(*content, WireFormat::kFloat32);
  }
  const ByteRope message = std::move(payload).Finish("header");
  EXPECT_EQ(message.fragments().size(), 1u);
  EXPECT_EQ(message.ToString(), expected);
}

TEST(ValuePayloadTest, KeepsTheOrderOfSmallAndLargeInAllFormats) {
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    ValuePayload payload;
    std::string expected = "header";
    uint64_t seed = 0;
    for (const int64_t elements : {3, 10'000, 1, 2, 20'000, 30'000, 5}) {
      const BlockContentRef content = ContentOf(elements, ++seed);
      payload.Add(content, format);
      expected += Encoded(*content, format);
    }
    EXPECT_EQ(payload.size(), expected.size() - 6);
    const ByteRope message = std::move(payload).Finish("header");
    EXPECT_EQ(message.fragments().size(), 7u) << "small neighbours are one piece";
    EXPECT_EQ(message.ToString(), expected);
  }
}

TEST(ValuePayloadTest, ManySmallBlocksAreOnePieceBesideTheHeader) {
  ValuePayload payload;
  for (uint64_t b = 0; b < 40; ++b) payload.Add(ContentOf(1000, b), WireFormat::kFloat32);
  const ByteRope message = std::move(payload).Finish("header");
  EXPECT_EQ(message.fragments().size(), 2u);
  EXPECT_EQ(message.size(), 6u + 160'000u);
}

TEST(ValuePayloadTest, NothingIsTheHeaderAlone) {
  EXPECT_EQ(ValuePayload().Finish("header").ToString(), "header");
}

}  // namespace
}  // namespace keelson
