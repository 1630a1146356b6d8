// The rows of a file with columns, CSV or TFRecord, whatever its columns are.
#ifndef KEELSON_CLI_DATA_ROW_FILE_H_
#define KEELSON_CLI_DATA_ROW_FILE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/columns/column_value.h"
#include "core/data/csv_columns.h"
#include "core/data/example_reader.h"
#include "core/data/record_file.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

inline constexpr char kCsv[] = "csv", kTfRecord[] = "tf_record", kNpz[] = "npz",
                      kParquet[] = "parquet";

// kNpz or kParquet where a file begins as these do, otherwise empty. Errors: those of reading it.
absl::StatusOr<std::string> FormatByContent(const std::string& path, FileSystem* file_system);

struct RowFileOptions {
  std::string path;
  // "csv" or "tf_record"; empty: tf_record where the name ends with ".tfrecord" or ".tfrecords",
  // packed or not, otherwise csv.
  std::string format = {};
  v1::DataConfig::Csv csv = {};
};

// Not thread-safe.
class RowFile {
 public:
  // INVALID_ARGUMENT: another format, a columnar or Parquet file or an archive, or a header that is
  // malformed. Others: RecordFile::Open's.
  static absl::StatusOr<std::unique_ptr<RowFile>> Open(const RowFileOptions& options,
                                                       FileSystem* file_system);

  bool is_csv() const { return csv_.has_value(); }
  const std::string& path() const { return file_->path(); }
  int64_t size() const { return file_->num_records() - first_; }
  // Those of all rows that were read. Those of a CSV file are known from the start.
  const std::vector<std::string>& names() const { return names_; }
  // The line of a CSV file that has the names; empty: none has.
  const std::string& header() const { return header_; }

  // Reads a row, which is in [0, size()). INVALID_ARGUMENT, "FILE:LINE:COLUMN: expected …, found
  // …": it is none. Others: RecordFile::Reader's.
  absl::Status Read(int64_t row);
  // These show the row that was read last, until the next Read: its value of names()[i], its bytes.
  const std::vector<ColumnValue>& values() const { return values_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  explicit RowFile(std::unique_ptr<RecordFile> file)
      : file_(std::move(file)), reader_(file_.get()) {}

  absl::Status ReadNames(const RowFileOptions& options, FileSystem* file_system);
  absl::Status ReadLine();
  absl::Status ReadExample();
  absl::Status NotARow(const RecordError& error) const;

  const std::unique_ptr<RecordFile> file_;
  RecordFile::Reader reader_;
  std::optional<CsvSyntax> csv_;
  std::optional<MissingTexts> missing_;
  int64_t first_ = 0;  // the record that is the first row
  std::string header_;
  std::vector<std::string> names_;
  ExampleReader::Columns columns_;
  ExampleReader examples_{&columns_};
  std::list<std::string> kept_;
  absl::string_view bytes_;
  std::vector<ColumnValue> values_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_DATA_ROW_FILE_H_
