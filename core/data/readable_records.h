// The records of one or more files, whatever their format.
#ifndef KEELSON_CORE_DATA_READABLE_RECORDS_H_
#define KEELSON_CORE_DATA_READABLE_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/data/columns/record_columns.h"
#include "core/data/dataset.h"
#include "core/model/spec/batch.h"

namespace keelson {

// Numbered in the files' order. Immutable; any number of threads may read them together.
class ReadableRecords {
 public:
  virtual ~ReadableRecords() = default;

  virtual int64_t size() const = 0;
  // The files, for messages: "FILE" or "FILE and 3 more".
  virtual std::string where() const = 0;

  // Fills a batch with these records, in the form of the schema for which the set was opened.
  // OUT_OF_RANGE: there is no such record. FAILED_PRECONDITION: a file was changed. Others: the
  // format's.
  virtual absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const = 0;

  // Dataset::ReadColumns; errors of Read.
  virtual absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const {
    return RecordColumns();
  }
};

// "FILE" or "FILE and 3 more", of `files` files.
std::string FilesText(const std::string& first, size_t files);

// Where a record is that has this number among those that are not left out; `left_out` ascends.
int64_t PositionOf(int64_t record, absl::Span<const int64_t> left_out);

// Records [begin, end) of `records`, which several datasets may share.
std::unique_ptr<Dataset> NewFileDataset(std::shared_ptr<const ReadableRecords> records,
                                        int64_t begin, int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_READABLE_RECORDS_H_
