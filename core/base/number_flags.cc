#include "core/base/number_flags.h"

#include <cmath>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace keelson {

CLI::Validator PositiveNumber() {
  const auto check = [](const std::string& text) {
    double value;
    if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value > 0) return std::string();
    return absl::StrCat("expected a number above 0, found \"", text, "\"");
  };
  return CLI::Validator(check, "POSITIVE");
}

CLI::Validator NonNegativeNumber() {
  const auto check = [](const std::string& text) {
    double value;
    if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0) return std::string();
    return absl::StrCat("expected a number from 0 up, found \"", text, "\"");
  };
  return CLI::Validator(check, "NONNEGATIVE");
}

}  // namespace keelson
