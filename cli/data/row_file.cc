#include "cli/data/row_file.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"
#include "core/data/columnar_layout.h"
#include "core/data/csv_line.h"
#include "core/data/record_framing.h"

namespace keelson {
namespace {

absl::StatusOr<std::string> ReadBegin(const std::string& path, size_t size,
                                      FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, file_system->OpenForRead(path));
  std::string begin(std::min<uint64_t>(file->size(), size), '\0');
  RETURN_IF_ERROR(file->Read(0, begin.size(), begin.data()));
  return begin;
}

std::string FormatOfBegin(absl::string_view begin) {
  return absl::StartsWith(begin, "PAR1")         ? kParquet
         : absl::StartsWith(begin, "PK\x03\x04") ? kNpz
                                                 : "";
}

absl::StatusOr<bool> IsCsv(const RowFileOptions& options) {
  if (options.format == kCsv) return true;
  if (options.format == kTfRecord) return false;
  if (!options.format.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--format: expected csv, tf_record, or, where nothing is split, npz or parquet, found \"",
        options.format, "\""));
  }
  const absl::string_view name = WithoutPackedSuffix(options.path);
  return !absl::EndsWith(name, ".tfrecord") && !absl::EndsWith(name, ".tfrecords");
}

// Says what a file is that has columns of another kind.
absl::Status CheckHasRows(const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string begin, ReadBegin(path, kColumnarMagic.size(), file_system));
  const std::string format = FormatOfBegin(begin);
  const char* const found =
      begin == kColumnarMagic
          ? "a columnar file, which data { columnar {} } reads and \"keelson_data stats\" describes"
      : format == kParquet ? "a Parquet file, which data { parquet {} } reads"
      : format == kNpz     ? "an archive; those of NumPy data { npz {} } reads"
                           : nullptr;
  if (found == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected CSV or TFRecord, found ", found));
}

absl::Status CheckSeparator(const std::string& separator) {
  if (separator.size() <= 1 || separator == "tab") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--separator: expected one character or tab, found \"", separator, "\""));
}

}  // namespace

absl::StatusOr<std::string> FormatByContent(const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string begin, ReadBegin(path, 4, file_system));
  return FormatOfBegin(begin);
}

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Open(const RowFileOptions& options,
                                                       FileSystem* file_system) {
  RETURN_IF_ERROR(CheckHasRows(options.path, file_system));
  ASSIGN_OR_RETURN(const bool csv, IsCsv(options));
  RETURN_IF_ERROR(CheckSeparator(options.csv.separator()));
  ASSIGN_OR_RETURN(std::unique_ptr<RecordFile> file,
                   RecordFile::Open(options.path, csv ? LineFraming() : TfRecordFraming(),
                                    file_system, /*min_indexed_bytes=*/~uint64_t{0}));
  std::unique_ptr<RowFile> rows(new RowFile(std::move(file)));
  if (csv) RETURN_IF_ERROR(rows->ReadNames(options, file_system));
  return rows;
}

absl::Status RowFile::ReadNames(const RowFileOptions& options, FileSystem* file_system) {
  csv_ = CsvSyntaxOf(options.csv, options.path);
  missing_.emplace(options.csv);
  if (!options.csv.header().empty()) {
    names_.assign(options.csv.header().begin(), options.csv.header().end());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(header_, ReadFirstLine(options.path, file_system));
  ASSIGN_OR_RETURN(names_, CsvNames(header_, *csv_, options.path));
  first_ = 1;
  return absl::OkStatus();
}

absl::Status RowFile::Read(int64_t row) {
  ASSIGN_OR_RETURN(bytes_, reader_.Record(first_ + row));
  return csv_.has_value() ? ReadLine() : ReadExample();
}

absl::Status RowFile::ReadLine() {
  kept_.clear();
  values_.assign(names_.size(), ColumnValue());
  size_t count = 0;
  RecordError error;
  const auto take = [&](const CsvField& field) {
    count = field.index + 1;
    if (field.index >= values_.size() || missing_->Have(field.text)) return;
    values_[field.index] = ColumnValue::Text(field.text);
  };
  if (!ForEachField(bytes_, *csv_, KeepIn(&kept_), take, &error)) return NotARow(error);
  if (count == names_.size()) return absl::OkStatus();
  error = {bytes_.size() + 1, absl::StrCat(names_.size(), " columns"), absl::StrCat(count)};
  return NotARow(error);
}

absl::Status RowFile::ReadExample() {
  size_t bad_byte = 0;
  const auto add_name = [this](absl::string_view name, absl::string_view) {
    if (columns_.emplace(name, columns_.size()).second) names_.emplace_back(name);
    return true;
  };
  if (!ForEachFeature(bytes_, add_name, &bad_byte) || !examples_.Read(bytes_, &bad_byte)) {
    return NotARow({bad_byte + 1, "a tf.Example", "other bytes"});
  }
  values_ = examples_.values();
  return absl::OkStatus();
}

absl::Status RowFile::NotARow(const RecordError& error) const {
  return absl::InvalidArgumentError(absl::StrCat(reader_.Where(error.column), ": expected ",
                                                 error.expected, ", found ", error.found));
}

}  // namespace keelson
