// The records of a stream, by the numbers that the chief gives them.
#ifndef KEELSON_CORE_DATA_STREAM_STREAM_DATASET_H_
#define KEELSON_CORE_DATA_STREAM_STREAM_DATASET_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/data/dataset.h"
#include "core/data/stream/stream_directory.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// A worker is told with its work which files have the records of it, and reads no others. Thread-
// safe.
class StreamDataset : public Dataset {
 public:
  explicit StreamDataset(std::shared_ptr<const StreamDirectory> directory)
      : directory_(std::move(directory)) {}

  // From now on records of these files are read, and of no others.
  void SetFiles(absl::Span<const v1::StreamFile> files);

  int64_t num_records() const override { return kStreamRecords; }
  // OUT_OF_RANGE: a record is in none of the files. FAILED_PRECONDITION: a file has another number
  // of records than the chief has found in it. Others: StreamDirectory::Open's and
  // FileRecords::Read's.
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;

 private:
  struct File {
    v1::StreamFile range;
    std::shared_ptr<const FileRecords> records;  // null: not opened yet
  };

  // The file of a record, opened.
  absl::StatusOr<const File*> FileOf(int64_t record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const StreamDirectory> directory_;
  mutable Mutex mu_;
  mutable std::vector<File> files_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_STREAM_STREAM_DATASET_H_
