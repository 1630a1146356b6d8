#include "core/base/number_flags.h"

#include <cmath>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace keelson {

namespace {

// What is larger would become the largest number of 64 bits in silence.
constexpr double kTooLarge = 0x1p63;

// `wanted` says what `fits` checks.
CLI::Validator Number(const char* name, const char* wanted, bool (*fits)(double)) {
  const auto check = [wanted, fits](const std::string& text) {
    double value;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || !fits(value)) {
      return absl::StrCat("expected ", wanted, ", found \"", text, "\"");
    }
    if (value < kTooLarge) return std::string();
    return absl::StrCat("expected a number below 2^63, found \"", text, "\"");
  };
  return CLI::Validator(check, name);
}

}  // namespace

CLI::Validator PositiveNumber() {
  return Number("POSITIVE", "a number above 0", [](double value) { return value > 0; });
}

CLI::Validator NonNegativeNumber() {
  return Number("NONNEGATIVE", "a number from 0 up", [](double value) { return value >= 0; });
}

}  // namespace keelson
