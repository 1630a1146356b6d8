// Range checks of configured numbers, for this folder. Each returns OK or INVALID_ARGUMENT
// "<field>: expected <range>, found <value>". No range contains a NaN or an infinity.
#ifndef KEELSON_CORE_OPTIM_VALIDATE_H_
#define KEELSON_CORE_OPTIM_VALIDATE_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {

template <typename Number>
absl::Status OutOfRange(absl::string_view field, absl::string_view range, Number found) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected ", range, ", found ", found));
}

template <typename Number>
absl::Status ExpectPositive(absl::string_view field, Number x) {
  return x > 0 && std::isfinite(x) ? absl::OkStatus() : OutOfRange(field, "> 0", x);
}

template <typename Number>
absl::Status ExpectNotNegative(absl::string_view field, Number x) {
  return x >= 0 && std::isfinite(x) ? absl::OkStatus() : OutOfRange(field, ">= 0", x);
}

inline absl::Status ExpectBelowOne(absl::string_view field, float x) {
  return x >= 0 && x < 1 ? absl::OkStatus() : OutOfRange(field, "[0, 1)", x);
}

inline absl::Status ExpectUpToOne(absl::string_view field, float x) {
  return x >= 0 && x <= 1 ? absl::OkStatus() : OutOfRange(field, "[0, 1]", x);
}

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_VALIDATE_H_
