#include "core/tensor/table_spec.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected 0 to ", most, ", found ", value));
}

constexpr absl::string_view kGhosts = "/ghosts";

}  // namespace

TableSpec GhostsOf(const TableSpec& table) {
  TableSpec ghosts = {absl::StrCat(table.name, kGhosts), /*dim=*/0, {}};
  ghosts.expire_after_steps = table.expire_after_steps;
  return ghosts;
}

absl::string_view TableOfRows(absl::string_view name) { return absl::StripSuffix(name, kGhosts); }

absl::Status CheckLimits(const TableSpec& spec) {
  if (spec.max_rows < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows: expected at least 0, found ", spec.max_rows));
  }
  if (spec.evict && spec.max_rows == 0) {
    return absl::InvalidArgumentError(
        "at_limit: expected REFUSE without max_rows, found EVICT: there is no limit");
  }
  // A row's step and count have 32 and 16 bits.
  RETURN_IF_ERROR(CheckRange("expire_after_steps", spec.expire_after_steps,
                             std::numeric_limits<int32_t>::max()));
  return CheckRange("admit_after", spec.admit_after, std::numeric_limits<uint16_t>::max());
}

}  // namespace keelson
