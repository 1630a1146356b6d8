// Records that are read by their numbers.
#ifndef KEELSON_CORE_DATA_DATASET_H_
#define KEELSON_CORE_DATA_DATASET_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/data/columns/record_columns.h"
#include "core/model/spec/batch.h"

namespace keelson {

// Immutable; any number of threads may read it together.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t num_records() const = 0;

  // Fills `batch` with the records in the order given, in the form of the RecordSchema for which
  // the dataset was opened. Memory of the batch that fits is used again. OUT_OF_RANGE: a record is
  // not in [0, num_records()); `batch` is then unspecified.
  virtual absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const = 0;

  // What a record has in those columns of its file of which features and labels are made. Nothing:
  // the records are not made of columns. OUT_OF_RANGE: as Read. Others: the format's.
  virtual absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const {
    return RecordColumns();
  }
};

// The error of Read where there is no such record.
absl::Status NoRecord(int64_t record, int64_t num_records);

class StreamDataset;
class StreamDirectory;

// The data on which a job trains and on which it is scored.
struct Datasets {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> eval;
  // Of a stream: `train`, and where its files come. Otherwise null.
  StreamDataset* stream = nullptr;
  std::shared_ptr<const StreamDirectory> stream_directory = nullptr;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_DATASET_H_
