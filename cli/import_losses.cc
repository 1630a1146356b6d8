#include "cli/import_losses.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "cli/element.h"

namespace keelson {

void CountLosses(BundleDtype dtype, const char* bytes, absl::Span<const float> values,
                 ImportLosses* losses) {
  const bool floating = dtype == BundleDtype::kFloat64 || dtype == BundleDtype::kFloat32 ||
                        dtype == BundleDtype::kFloat16 || dtype == BundleDtype::kBfloat16;
  for (size_t i = 0; i < values.size(); ++i) {
    if (floating && std::isfinite(values[i])) continue;
    const long double exact =
        ElementValue(dtype, bytes + static_cast<int64_t>(i) * DtypeSize(dtype));
    if (!floating) {
      if (exact != static_cast<long double>(values[i])) ++losses->rounded_integers;
    } else if (std::isfinite(exact)) {
      ++losses->became_infinite;
    } else {
      ++losses->not_finite;
    }
  }
}

void AddWarnings(absl::string_view name, int64_t elements, const ImportLosses& losses,
                 std::vector<std::string>* warnings) {
  const auto add = [&](int64_t count, absl::string_view what) {
    if (count == 0) return;
    warnings->push_back(absl::StrCat(name, ": ", count, " of ", elements, " elements ", what));
  };
  add(losses.not_finite, "are not finite");
  add(losses.became_infinite, "are too large for float32 and become infinite");
  add(losses.rounded_integers, "are integers that float32 rounds");
}

}  // namespace keelson
