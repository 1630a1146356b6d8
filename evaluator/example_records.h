// The file MODEL_DIR/eval/examples.json: a few of the evaluation's records as a request to predict
// has them, from which the dashboard's form begins.
#ifndef KEELSON_EVALUATOR_EXAMPLE_RECORDS_H_
#define KEELSON_EVALUATOR_EXAMPLE_RECORDS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/dataset.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// So many records, which lie at equal distances.
inline constexpr int64_t kExampleRecords = 8;
// A record whose JSON is longer is left out.
inline constexpr size_t kMaxExampleBytes = size_t{64} << 10;

// {"records": [...]} in a line. Each is, of records that are made of the columns of a file,
//   {"record": 17, "columns": {"age": ["39"], "seen": ["3", "12"]}}
// with the values of all columns, also of labels, as texts; a missing one has none. Of others it is
//   {"record": 17, "features": {"user": "7", "seen": {"ids": ["3"], "weights": [0.5]}, "x": [1]},
//    "labels": {"clicked": 1}}
// with ids as texts. Those of a model that takes one feature, of numbers, are left out: they are
// images or rows of numbers. Errors: the dataset's.
absl::StatusOr<std::string> FormatExamples(const Dataset& records, const RecordSchema& schema);

// Writes them, atomically. Errors of FormatExamples and file.h: the file is as it was.
absl::Status WriteExamples(absl::string_view model_dir, const Dataset& records,
                           const RecordSchema& schema,
                           FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EXAMPLE_RECORDS_H_
