#include "core/data/record_selection.h"

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

absl::Status BadSubset(absl::string_view field, const std::string& where, int64_t begin,
                       int64_t end, int64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.", field, ": expected 0 <= begin < end <= ", size, ", the records of ",
                   where, ", found [", begin, ", ", end, ")"));
}

absl::Status NoRecords(absl::string_view field, const std::string& where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected at least one record for data.", field, ", found none"));
}

}  // namespace

absl::StatusOr<RecordSelection> SelectRecords(const v1::DataConfig::Subset& subset,
                                              absl::string_view field, const std::string& where,
                                              RecordSelection all) {
  const int64_t size = all.end - all.begin;
  if (size == 0) return NoRecords(field, where);
  const int64_t end = subset.end() == 0 ? size : subset.end();
  if (subset.begin() < 0 || subset.begin() >= end || end > size) {
    return BadSubset(field, where, subset.begin(), end, size);
  }
  return RecordSelection{all.begin + subset.begin(), all.begin + end};
}

}  // namespace keelson
