// Checks of a configuration's fields that several readers of it make.
#ifndef KEELSON_CORE_MODEL_SPEC_FIELD_CHECKS_H_
#define KEELSON_CORE_MODEL_SPEC_FIELD_CHECKS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/shape.h"

namespace keelson {

// The most elements that a tensor of one example, or a variable, may have.
inline constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

// INVALID_ARGUMENT: `value` is 0 or negative.
absl::Status CheckPositive(absl::string_view path, int64_t value);

// INVALID_ARGUMENT: `value` is 0, negative or not finite.
absl::Status CheckPositiveNumber(absl::string_view path, float value);

// INVALID_ARGUMENT: `shape`, whose extents are positive, has more than kMaxElements. `what` says
// what it is the shape of: "a kernel".
absl::Status CheckElements(absl::string_view path, absl::string_view what, const Shape& shape);

// INVALID_ARGUMENT: `name` is none of TensorFlow's scopes without a slash, which separates a
// layer's name from its variables'.
absl::Status CheckName(absl::string_view path, const std::string& name);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_FIELD_CHECKS_H_
