// Checks of what the configuration says of one column of a feature.
#ifndef KEELSON_CORE_DATA_COLUMNS_COLUMN_CHECKS_H_
#define KEELSON_CORE_DATA_COLUMNS_COLUMN_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/data/columns/record_plan.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// INVALID_ARGUMENT: "<field>: expected <what>, found <value>".
template <typename T>
absl::Status Wrong(absl::string_view field, absl::string_view expected, const T& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", found ", found));
}

inline std::string Quoted(absl::string_view text) { return absl::StrCat("\"", text, "\""); }

absl::Status CheckFinite(absl::string_view field, float value);

// INVALID_ARGUMENT, beginning with the field's path: a kind that does not go with the feature's, or
// a field that is malformed or does not go with the kind. Whether ids fit is left open where a file
// has the vocabulary.
absl::Status CheckColumn(const PlannedColumn& column, const FeatureSpec& feature);

// INVALID_ARGUMENT: an embedding that takes the feature has fewer rows than there are ids.
absl::Status CheckIdsFit(const PlannedColumn& column, const FeatureSpec& feature);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_COLUMN_CHECKS_H_
