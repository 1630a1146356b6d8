#include "core/serving/json_values.h"

#include "absl/strings/str_cat.h"

namespace keelson {

absl::Status WrongValue(absl::string_view where, absl::string_view expected,
                        absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected ", expected, ", found ", found));
}

std::string FoundText(const nlohmann::json* value) {
  if (value == nullptr) return "none";
  if (value->is_array()) return absl::StrCat("a list of ", value->size());
  if (value->is_object()) return "an object";
  return value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
      .substr(0, kQuotedJsonBytes);
}

}  // namespace keelson
