// How exactly a device multiplies matrices. Everything else is computed in float32.
#ifndef KEELSON_CORE_DEVICE_PRECISION_H_
#define KEELSON_CORE_DEVICE_PRECISION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

enum class Precision {
  kFloat32,
  // Operands rounded to 10 bits of mantissa, sums in float32.
  kTf32,
  // Operands rounded to bfloat16, sums and results in float32.
  kBfloat16,
};

// "float32", "tf32", "bfloat16".
absl::string_view PrecisionName(Precision precision);

// INVALID_ARGUMENT: "precision: expected float32, tf32 or bfloat16, found \"half\"".
absl::StatusOr<Precision> ParsePrecision(absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_PRECISION_H_
