// Writes records as a columnar file (columnar_layout.h).
#ifndef KEELSON_CORE_DATA_COLUMNAR_WRITER_H_
#define KEELSON_CORE_DATA_COLUMNAR_WRITER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/columnar_layout.h"
#include "core/data/dataset.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// The file appears as a whole when Finish succeeds. Until then it has a hidden name beside that
// path, which the destructor removes. Not thread-safe.
class ColumnarWriter {
 public:
  // `file_system` outlives the writer. ALREADY_EXISTS: something has that path. Others: the file
  // system's.
  static absl::StatusOr<std::unique_ptr<ColumnarWriter>> Create(const std::string& path,
                                                                const RecordSchema& schema,
                                                                FileSystem* file_system);
  ~ColumnarWriter();

  // Appends records in the form of the schema: kColumnarGroup of them, but for the last call, which
  // may have fewer. INVALID_ARGUMENT: a label is not finite. Others: the file system's.
  absl::Status Append(const Batch& batch);
  // The last call.
  absl::Status Finish();

 private:
  ColumnarWriter(std::string path, FileSystem* file_system);

  absl::Status AppendPart(const void* data, size_t bytes);
  absl::Status AppendFeature(const FeatureValues& values, ColumnarFeature* feature);
  absl::Status AppendLabel(const Tensor& values, ColumnarLabel* label);
  absl::Status Write(absl::string_view bytes);

  const std::string path_;
  const std::string temporary_path_;
  FileSystem* const file_system_;
  std::unique_ptr<AppendFile> file_;
  uint64_t written_ = 0;
  ColumnarLayout layout_;
  bool finished_ = false;
};

// Writes all records of a dataset, which has the form of the schema. Errors: those of the writer
// and of Dataset::Read.
absl::Status WriteColumnarFile(const Dataset& records, const RecordSchema& schema,
                               const std::string& path, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNAR_WRITER_H_
