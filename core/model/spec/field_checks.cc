#include "core/model/spec/field_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

bool IsName(const std::string& name) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.'; };
  return !name.empty() && allowed(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return allowed(c) || c == '_' || c == '-';
  });
}

}  // namespace

absl::Status CheckPositive(absl::string_view path, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return FieldError(path, absl::StrCat("expected > 0, found ", value));
}

absl::Status CheckPositiveNumber(absl::string_view path, float value) {
  // Written so that not-a-number fails too.
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return FieldError(path, absl::StrCat("expected > 0, found ", value));
}

absl::Status CheckElements(absl::string_view path, absl::string_view what, const Shape& shape) {
  int64_t elements = 1;
  for (int64_t dim : shape.dims()) {
    if (dim <= kMaxElements / elements) {
      elements *= dim;
      continue;
    }
    return FieldError(path, absl::StrCat("expected ", what, " of at most ", kMaxElements,
                                         " elements, found ", shape.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckName(absl::string_view path, const std::string& name) {
  if (IsName(name)) return absl::OkStatus();
  return FieldError(path,
                    absl::StrCat("expected letters, digits, '.', '_' or '-', the first of them a "
                                 "letter, a digit or '.', found \"",
                                 name, "\""));
}

}  // namespace keelson
