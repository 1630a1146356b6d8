// Checks of configured fields, for this folder. Each returns OK or INVALID_ARGUMENT
// "<field>: expected <what>, found <value>".
#ifndef KEELSON_CORE_CONFIG_FIELD_CHECKS_H_
#define KEELSON_CORE_CONFIG_FIELD_CHECKS_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {

template <typename T>
absl::Status FieldError(absl::string_view field, absl::string_view expected, const T& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", found ", found));
}

// Fractions are checked as doubles; not-a-number is in no range.
template <typename T>
absl::Status Positive(absl::string_view field, T value) {
  if (value > 0 && std::isfinite(static_cast<double>(value))) return absl::OkStatus();
  return FieldError(field, "> 0", value);
}

template <typename T>
absl::Status NotNegative(absl::string_view field, T value) {
  if (value >= 0 && std::isfinite(static_cast<double>(value))) return absl::OkStatus();
  return FieldError(field, ">= 0", value);
}

inline absl::Status Fraction(absl::string_view field, double value) {
  return value >= 0 && value < 1 ? absl::OkStatus() : FieldError(field, "in [0, 1)", value);
}

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_FIELD_CHECKS_H_
