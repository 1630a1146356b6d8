#include "core/checkpoint/ordered_code.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

std::string SignedHex(int64_t value) {
  std::string code;
  AppendOrderedSigned(value, &code);
  return absl::BytesToHexString(code);
}

std::string UnsignedHex(uint64_t value) {
  std::string code;
  AppendOrderedUnsigned(value, &code);
  return absl::BytesToHexString(code);
}

std::string StringHex(absl::string_view value) {
  std::string code;
  AppendOrderedString(value, &code);
  return absl::BytesToHexString(code);
}

TEST(OrderedCodeTest, SignedVectors) {
  const std::pair<int64_t, const char*> vectors[] = {
      {0, "80"},       {5, "85"},         {-1, "7f"},         {63, "bf"},
      {-64, "40"},     {64, "c040"},      {-65, "3fbf"},      {-0x800, "3800"},
      {8191, "dfff"},  {8192, "e02000"},  {100000, "e186a0"}, {0x424242, "f0424242"},
      {-8192, "2000"}, {-8193, "1fdfff"},
  };
  for (const auto& [value, hex] : vectors) EXPECT_EQ(SignedHex(value), hex) << value;
}

TEST(OrderedCodeTest, SignedExtremesTakeNineAndTenBytes) {
  EXPECT_EQ(SignedHex((int64_t{1} << 62) - 1), "ffbfffffffffffffff");
  EXPECT_EQ(SignedHex(-(int64_t{1} << 62)), "004000000000000000");
  EXPECT_EQ(SignedHex(std::numeric_limits<int64_t>::max()), "ffc07fffffffffffffff");
  EXPECT_EQ(SignedHex(std::numeric_limits<int64_t>::min()), "003f8000000000000000");
}

TEST(OrderedCodeTest, SignedOrderIsTheOrderOfValues) {
  std::vector<int64_t> values;
  for (int shift = 62; shift >= 0; --shift) values.push_back(-(int64_t{1} << shift));
  values.push_back(0);
  for (int shift = 0; shift <= 62; ++shift) values.push_back(int64_t{1} << shift);
  std::string last;
  for (const int64_t value : values) {
    std::string code;
    AppendOrderedSigned(value, &code);
    EXPECT_LT(last, code) << value;
    last = code;
  }
}

TEST(OrderedCodeTest, UnsignedVectors) {
  EXPECT_EQ(UnsignedHex(0), "00");
  EXPECT_EQ(UnsignedHex(2), "0102");
  EXPECT_EQ(UnsignedHex(255), "01ff");
  EXPECT_EQ(UnsignedHex(256), "020100");
  EXPECT_EQ(UnsignedHex(std::numeric_limits<uint64_t>::max()), "08ffffffffffffffff");
}

TEST(OrderedCodeTest, StringsEscapeZeroAndFf) {
  EXPECT_EQ(StringHex("w"), "770001");
  EXPECT_EQ(StringHex(""), "0001");
  EXPECT_EQ(StringHex(absl::string_view("a\0b\xff", 4)), "6100ff62ff000001");
}

TEST(OrderedCodeTest, SliceKeyVectors) {
  const Shape shape({10, 3});
  EXPECT_EQ(absl::BytesToHexString(EncodeSliceKey("w", RowSlice(shape, 0, 5))),
            "00770001010280858083");
  EXPECT_EQ(absl::BytesToHexString(EncodeSliceKey("w", RowSlice(shape, 5, 10))),
            "00770001010285858083");
}

TEST(OrderedCodeTest, FullExtentInSliceKey) {
  const TensorSliceSpec slice{{{0, 5}, {}}};
  EXPECT_EQ(absl::BytesToHexString(EncodeSliceKey("w", slice)), "0077000101028085807f");
}

}  // namespace
}  // namespace keelson
