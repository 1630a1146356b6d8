// What a record has in the columns of its file, as texts to be shown.
#ifndef KEELSON_CORE_DATA_COLUMNS_RECORD_COLUMNS_H_
#define KEELSON_CORE_DATA_COLUMNS_RECORD_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/data/columns/column_value.h"

namespace keelson {

struct RecordColumn {
  std::string name;
  // Its values: one of a text, of a list all of them, and none where it is missing.
  std::vector<std::string> values;
};

// Those of `names`, in that order.
using RecordColumns = std::vector<RecordColumn>;

// `values` are those of the columns `names`. A number is the shortest text that is read as it.
RecordColumns ColumnTexts(absl::Span<const std::string> names,
                          absl::Span<const ColumnValue> values);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_RECORD_COLUMNS_H_
