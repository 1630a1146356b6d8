#include "core/data/dataset.h"

#include "absl/strings/str_cat.h"

namespace keelson {

absl::Status NoRecord(int64_t record, int64_t num_records) {
  return absl::OutOfRangeError(
      absl::StrCat("record ", record, ": expected one in [0, ", num_records, ")"));
}

}  // namespace keelson
