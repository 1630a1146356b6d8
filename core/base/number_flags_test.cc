#include "core/base/number_flags.h"

#include <gtest/gtest.h>

#include <string>

#include "CLI/CLI.hpp"

namespace keelson {
namespace {

// What the flag says to the value; "": it takes it.
std::string Refusal(const CLI::Validator& check, const std::string& value) {
  CLI::App app;
  double number = 0;
  app.add_option("--lease", number)->check(check);
  try {
    app.parse("--lease=" + value);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(NumberFlagsTest, PositiveNumberIsFiniteAndAboveZero) {
  for (const char* value : {"1", "0.001", "1e9"}) {
    EXPECT_EQ(Refusal(PositiveNumber(), value), "") << value;
  }
  for (const std::string value : {"abc", "0", "-1", "5s", "inf", "nan"}) {
    EXPECT_EQ(Refusal(PositiveNumber(), value),
              "--lease: expected a number above 0, found \"" + value + "\"");
  }
}

TEST(NumberFlagsTest, WhatWouldBecomeTheLargestNumberIsRefused) {
  for (const CLI::Validator& check : {PositiveNumber(), NonNegativeNumber()}) {
    EXPECT_EQ(Refusal(check, "9000000000000000000"), "");
    EXPECT_EQ(Refusal(check, "99999999999999999999"),
              "--lease: expected a number below 2^63, found \"99999999999999999999\"");
  }
}

TEST(NumberFlagsTest, NonNegativeNumberIsFiniteAndMayBeZero) {
  for (const char* value : {"0", "1", "0.5"}) {
    EXPECT_EQ(Refusal(NonNegativeNumber(), value), "") << value;
  }
  for (const std::string value : {"abc", "-1", "inf", "nan"}) {
    EXPECT_EQ(Refusal(NonNegativeNumber(), value),
              "--lease: expected a number from 0 up, found \"" + value + "\"");
  }
}

}  // namespace
}  // namespace keelson
