// The error of a field of a configuration.
#ifndef KEELSON_CORE_MODEL_SPEC_FIELD_ERROR_H_
#define KEELSON_CORE_MODEL_SPEC_FIELD_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {

// INVALID_ARGUMENT: "model.layers[2].dense.units: expected > 0, found -3".
inline absl::Status FieldError(absl::string_view path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
}

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_FIELD_ERROR_H_
