#include "core/model/spec/field_checks.h"

#include "absl/strings/str_cat.h"
#include "core/model/spec/field_error.h"

namespace keelson {

absl::Status CheckPositive(absl::string_view path, int64_t value) {
  if (value > 0) return absl::OkStatus();
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

}  // namespace keelson
