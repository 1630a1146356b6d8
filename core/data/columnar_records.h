// The records of columnar files, copied into batches as they lie there.
#ifndef KEELSON_CORE_DATA_COLUMNAR_RECORDS_H_
#define KEELSON_CORE_DATA_COLUMNAR_RECORDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/readable_records.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// Opens files that ColumnarWriter wrote. A model may take some of their features and labels, each
// in the form in which it was written: its kind, shape and weights. What was not read before is
// checked when it is (ColumnarFile::Check). `paths` is not empty; `file_system` outlives the
// records.
// INVALID_ARGUMENT, naming the file and the feature or label: it is not there, or in another form;
// an id is too large for the model's embedding, or a label is none that its loss takes; a file has
// no record. Others: ColumnarFile::Open's.
absl::StatusOr<std::shared_ptr<const ReadableRecords>> OpenColumnarRecords(
    const std::vector<std::string>& paths, const RecordSchema& schema, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNAR_RECORDS_H_
