// The records of files.
#ifndef KEELSON_CORE_DATA_FILE_RECORDS_H_
#define KEELSON_CORE_DATA_FILE_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/data/readable_records.h"
#include "core/data/record_file.h"
#include "core/data/record_format.h"

namespace keelson {

// The files stay on the disk and are read as they are needed.
class FileRecords : public ReadableRecords {
 public:
  // `paths` is not empty. A header is checked here, and no record. With `max_bad_records` 0 only
  // the first record of each file is tried here, and one that is none is an error of the Read that
  // comes upon it. With more, all are read once, which RecordFile remembers beside large files;
  // those that are none are left out, so that all tasks count the same records, and the log says
  // how many of each file.
  // INVALID_ARGUMENT, "FILE:LINE:COLUMN: expected …, found …" (RecordFraming::Where): one is no
  // record, and there are more of them than allowed; a header is another one. Others:
  // RecordFile::Open's.
  static absl::StatusOr<std::shared_ptr<const FileRecords>> Open(
      const std::vector<std::string>& paths, std::unique_ptr<const RecordFormat> format,
      int64_t max_bad_records, FileSystem* file_system);

  int64_t size() const override { return begins_.back(); }
  std::string where() const override;

  // INVALID_ARGUMENT, "FILE:LINE:COLUMN: expected …, found …": one is no record. DATA_LOSS: a file
  // has become shorter, or a record is not as it was written.
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override;
  absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const override;
  // Read in two steps, for a batch with records of several files: makes room for all of them,
  // and fills the rows from `first_row` on, behind those that are filled already.
  void Prepare(int64_t rows, Batch* batch) const;
  absl::Status ReadRows(absl::Span<const int64_t> records, int64_t first_row, Batch* batch) const;

 private:
  struct File {
    std::unique_ptr<RecordFile> content;
    std::vector<int64_t> left_out;  // a header, and those that are no records, ascending
  };
  // One for each file of which something was read.
  using Readers = std::vector<std::unique_ptr<RecordFile::Reader>>;

  explicit FileRecords(std::unique_ptr<const RecordFormat> format) : format_(std::move(format)) {}

  absl::Status Add(std::unique_ptr<RecordFile> content, int64_t max_bad_records);
  // The header, and the first record where all shall be records.
  absl::Status CheckFirst(const RecordFile& file, bool record) const;
  // Those of a file that are no records, of which there may be `most`.
  absl::StatusOr<std::vector<int64_t>> FindBadRecords(const RecordFile& file, int64_t most,
                                                      int64_t max_bad_records) const;
  absl::Status ReadRecord(int64_t record, int64_t row, Readers* readers, Batch* batch) const;
  // The bytes of a record, and the reader that has them.
  absl::StatusOr<absl::string_view> BytesOf(int64_t record, Readers* readers,
                                            RecordFile::Reader** reader) const;

  const std::unique_ptr<const RecordFormat> format_;
  std::vector<File> files_;
  std::vector<int64_t> begins_ = {0};  // the first record of each file, and the end
  int64_t bad_records_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_FILE_RECORDS_H_
