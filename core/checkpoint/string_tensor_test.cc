#include "core/checkpoint/string_tensor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/varint.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string LittleEndian(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// The layout written out by hand, for two strings.
std::string TwoStrings() {
  const uint32_t lengths = Crc32c(LittleEndian(2) + LittleEndian(300));
  return absl::StrCat("\x02\xac\x02", LittleEndian(MaskCrc32c(lengths)), "ab",
                      std::string(300, 'x'));
}

TEST(StringTensorTest, PrefixIsLengthAndItsChecksum) {
  const StringTensorPrefix prefix = EncodeStringTensorPrefix(300);
  const std::string checksum = LittleEndian(MaskCrc32c(Crc32c(LittleEndian(300))));
  EXPECT_EQ(prefix.bytes, "\xac\x02" + checksum);
  EXPECT_EQ(prefix.crc, Crc32c(LittleEndian(300) + checksum));
}

TEST(StringTensorTest, LengthBeyond32BitsIsChecksummedAs64) {
  const uint64_t size = (uint64_t{1} << 32) + 7;
  const std::string length = LittleEndian(7) + LittleEndian(1);
  EXPECT_EQ(EncodeStringTensorPrefix(size).crc,
            Crc32c(length + LittleEndian(MaskCrc32c(Crc32c(length)))));
}

TEST(StringTensorTest, DecodesSeveral) {
  const auto decoded = DecodeStringTensor(TwoStrings(), 2);
  ASSERT_TRUE(decoded.ok());
  EXPECT_THAT(decoded->strings, ElementsAre("ab", std::string(300, 'x')));
  EXPECT_EQ(decoded->crc,
            Crc32c(absl::StrCat(LittleEndian(2), LittleEndian(300), TwoStrings().substr(3))));
}

TEST(StringTensorTest, DecodesNone) {
  const auto decoded = DecodeStringTensor("", 0);
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(decoded->strings.empty());
}

TEST(StringTensorTest, DamageIsFound) {
  const std::string good = TwoStrings();
  std::string wrong_length = good;
  wrong_length[0] = 1;
  const std::pair<std::string, const char*> cases[] = {
      {"", "ends within"},
      {std::string(20, '\xff'), "ends within"},
      {good.substr(0, 1), "ends within"},
      {good.substr(0, 5), "before their checksum"},
      {wrong_length, "checksum mismatch"},
      {good.substr(0, good.size() - 1), "longer than the entry"},
      {good + "y", "shorter than the entry"},
  };
  for (const auto& [bytes, text] : cases) {
    const absl::Status status = DecodeStringTensor(bytes, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST(VarintTest, RoundTripsAndRefusesMoreThan64Bits) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, ~uint64_t{0}}) {
    std::string bytes;
    AppendVarint(value, &bytes);
    absl::string_view in = bytes;
    uint64_t back;
    ASSERT_TRUE(ConsumeVarint(&in, &back));
    EXPECT_EQ(back, value);
    EXPECT_TRUE(in.empty());
  }
  absl::string_view too_long = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  uint64_t value;
  EXPECT_FALSE(ConsumeVarint(&too_long, &value));
}

}  // namespace
}  // namespace keelson
