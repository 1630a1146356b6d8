#include "cli/element.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checkpoint/element_conversion.h"

namespace keelson {
namespace {

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// float16 and bfloat16 too.
float LoadFloat(BundleDtype dtype, const char* from) {
  float value;
  ConvertToFloat(dtype, from, absl::MakeSpan(&value, 1));
  return value;
}

}  // namespace

static_assert(std::numeric_limits<long double>::digits >= 64, "uint64 is exact");

long double ElementValue(BundleDtype dtype, const char* from) {
  switch (dtype) {
    case BundleDtype::kFloat64:
      return Load<double>(from);
    case BundleDtype::kInt32:
      return Load<int32_t>(from);
    case BundleDtype::kUint32:
      return Load<uint32_t>(from);
    case BundleDtype::kInt64:
      return static_cast<long double>(Load<int64_t>(from));
    case BundleDtype::kUint64:
      return static_cast<long double>(Load<uint64_t>(from));
    default:  // Fits in a float32.
      return LoadFloat(dtype, from);
  }
}

std::string ElementText(BundleDtype dtype, const char* from) {
  switch (dtype) {
    case BundleDtype::kFloat32:
      return absl::StrFormat("%.9g", Load<float>(from));
    case BundleDtype::kFloat64:
      return absl::StrFormat("%.17g", Load<double>(from));
    case BundleDtype::kFloat16:
    case BundleDtype::kBfloat16:
      return absl::StrFormat("%.5g", LoadFloat(dtype, from));
    case BundleDtype::kBool:
      return *from != 0 ? "true" : "false";
    case BundleDtype::kInt64:
      return absl::StrCat(Load<int64_t>(from));
    case BundleDtype::kUint64:
      return absl::StrCat(Load<uint64_t>(from));
    case BundleDtype::kComplex64:
      return absl::StrCat("(", ElementText(BundleDtype::kFloat32, from), ", ",
                          ElementText(BundleDtype::kFloat32, from + 4), ")");
    case BundleDtype::kComplex128:
      return absl::StrCat("(", ElementText(BundleDtype::kFloat64, from), ", ",
                          ElementText(BundleDtype::kFloat64, from + 8), ")");
    default:
      if (IsNumeric(dtype)) return absl::StrFormat("%.0f", ElementValue(dtype, from));
      return absl::StrCat("0x",
                          absl::BytesToHexString({from, static_cast<size_t>(DtypeSize(dtype))}));
  }
}

}  // namespace keelson
