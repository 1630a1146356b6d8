#include "core/device/precision.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace keelson {

absl::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBfloat16:
      return "bfloat16";
  }
  return "";
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  for (Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("precision: expected float32, tf32 or bfloat16, found \"", name, "\""));
}

}  // namespace keelson
