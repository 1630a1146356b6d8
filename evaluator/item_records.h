// The file MODEL_DIR/eval/items.columnar: a record of each item that is to be found, of which the
// dashboard computes the items nearest to a query.
#ifndef KEELSON_EVALUATOR_ITEM_RECORDS_H_
#define KEELSON_EVALUATOR_ITEM_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// So many records are looked at, and so many items are written, at most.
inline constexpr int64_t kMostItemRecords = int64_t{1} << 20;
inline constexpr size_t kMostItems = size_t{1} << 17;

// Writes the first record with each distinct id of `item_feature`, a position in the schema's
// features, among the first `count` records, in their order. What was there before is removed
// first. Errors: those of Dataset::Read, ColumnarWriter and the file system.
absl::Status WriteItemRecords(absl::string_view model_dir, const Dataset& records, int64_t count,
                              const RecordSchema& schema, size_t item_feature,
                              FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_ITEM_RECORDS_H_
