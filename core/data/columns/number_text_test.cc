#include "core/data/columns/number_text.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

// The number at the front of `text`, of which `used` bytes are its.
std::optional<float> Decimal(const std::string& text, size_t used) {
  float value = 0;
  const char* const end = ReadDecimal(text.data(), text.data() + text.size(), &value);
  if (end == nullptr) return std::nullopt;
  EXPECT_EQ(end - text.data(), static_cast<ptrdiff_t>(used)) << text;
  return value;
}

std::optional<float> Decimal(const std::string& text) { return Decimal(text, text.size()); }

std::optional<uint64_t> Whole(const std::string& text, size_t used) {
  uint64_t value = 0;
  const char* const end = ReadWhole(text.data(), text.data() + text.size(), &value);
  if (end == nullptr) return std::nullopt;
  EXPECT_EQ(end - text.data(), static_cast<ptrdiff_t>(used)) << text;
  return value;
}

TEST(NumberTextTest, Decimals) {
  EXPECT_EQ(Decimal("1"), 1.0f);
  EXPECT_EQ(Decimal("+1"), 1.0f);
  EXPECT_EQ(Decimal("-0.25"), -0.25f);
  EXPECT_EQ(Decimal(".5"), 0.5f);
  EXPECT_EQ(Decimal("5."), 5.0f);
  EXPECT_EQ(Decimal("1e-3"), 0.001f);
  EXPECT_EQ(Decimal("2.5E+2"), 250.0f);
  EXPECT_EQ(Decimal("123456789012345678901234567890"), 123456789012345678901234567890.0f);
  EXPECT_EQ(Decimal("0.0000000000000000000000000000000001"), 1e-34f);
  EXPECT_EQ(Decimal("1e-60"), 0.0f);
  EXPECT_TRUE(std::signbit(*Decimal("-0")));
}

TEST(NumberTextTest, ANumberEndsWhereOtherTextBegins) {
  EXPECT_EQ(Decimal("12:5", 2), 12.0f);
  EXPECT_EQ(Decimal("1.5 7", 3), 1.5f);
  EXPECT_EQ(Decimal("1.5.7", 3), 1.5f);
}

TEST(NumberTextTest, WhatIsNoNumber) {
  for (const char* text : {"", "-", "+", ".", "x", "--1", "+-1", "-+1", "nan", "inf", "-inf",
                           "1e39", "1e999", " 1", "e5"}) {
    EXPECT_EQ(Decimal(text), std::nullopt) << text;
  }
}

TEST(NumberTextTest, DecimalsAreThoseOfStrtod) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double number = static_cast<double>(random() % 2'000'000'000) / 1e6 - 1000;
    for (const std::string& text :
         {absl::StrFormat("%.*f", static_cast<int>(i % 15), number),
          absl::StrFormat("%.*g", 1 + static_cast<int>(i % 17), number)}) {
      EXPECT_EQ(Decimal(text), static_cast<float>(std::strtod(text.c_str(), nullptr))) << text;
    }
  }
}

TEST(NumberTextTest, WholeNumbersOf64Bits) {
  EXPECT_EQ(Whole("0", 1), 0u);
  EXPECT_EQ(Whole("007:", 3), 7u);
  EXPECT_EQ(Whole("18446744073709551615", 20), 18446744073709551615u);
  for (const char* text : {"", ":", "-1", "+1", "18446744073709551616", "99999999999999999999"}) {
    EXPECT_EQ(Whole(text, 0), std::nullopt) << text;
  }
}

TEST(NumberTextTest, FoundTextIsShortAndOfOneLine) {
  EXPECT_EQ(FoundText("abc def", " "), "\"abc\"");
  EXPECT_EQ(FoundText("", " "), "the end of the line");
  EXPECT_EQ(FoundText(" x", " "), "\" \"");
  EXPECT_EQ(FoundText("a\x01\x80", " "), "\"a\\x01\\x80\"");
  EXPECT_EQ(FoundText(std::string(100, 'a'), " "),
            absl::StrCat("\"", std::string(32, 'a'), "...\""));
}

}  // namespace
}  // namespace keelson
