#include "core/wire/round_part.h"

#include <string>

#include "gmock/gmock.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {
namespace {

ByteRope RopeWith(const std::string& bytes) {
  ByteRope rope;
  rope.AppendCopy(bytes);
  return rope;
}

TEST(RoundPartTest, IsWhatProtobufWritesAndReads) {
  const std::string payload(1000, 'x');
  v1::RoundPart expected;
  expected.set_blocks(300);
  expected.set_payload(payload);
  const std::string bytes = EncodeRoundPart({300, payload.size()}) + payload;
  EXPECT_EQ(bytes, expected.SerializeAsString());
  const ByteRope rope = RopeWith(bytes);
  ByteCursor cursor(rope);
  const auto head = DecodeRoundPart(&cursor);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->blocks, 300u);
  EXPECT_EQ(head->payload_bytes, 1000u);
  EXPECT_EQ(cursor.remaining(), 1000u);
}

TEST(RoundPartTest, AnEmptyOneHasNothing) {
  EXPECT_EQ(EncodeRoundPart({}), "");
  const ByteRope rope;
  ByteCursor cursor(rope);
  const auto head = DecodeRoundPart(&cursor);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->blocks, 0u);
  EXPECT_EQ(head->payload_bytes, 0u);
}

TEST(RoundPartTest, MessagesThatAreNoneAreRefused) {
  const auto refusal = [](const std::string& bytes) {
    const ByteRope rope = RopeWith(bytes);
    ByteCursor cursor(rope);
    return std::string(DecodeRoundPart(&cursor).status().message());
  };
  EXPECT_THAT(refusal(EncodeRoundPart({1, 10}) + "short"),
              testing::HasSubstr("malformed RoundPart: field payload"));
  EXPECT_THAT(refusal("\x08"), testing::HasSubstr("malformed RoundPart: field blocks"));
}

}  // namespace
}  // namespace keelson
