#include "core/data/file_records.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// Of the record that was read last.
absl::Status NotARecord(const RecordFile::Reader& reader, const RecordError& error,
                        absl::string_view more = "") {
  return absl::InvalidArgumentError(absl::StrCat(reader.Where(error.column), ": expected ",
                                                 error.expected, ", found ", error.found, more));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FileRecords>> FileRecords::Open(
    const std::vector<std::string>& paths, std::unique_ptr<const RecordFormat> format,
    int64_t max_bad_records, FileSystem* file_system) {
  std::shared_ptr<FileRecords> records(new FileRecords(std::move(format)));
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<RecordFile> file,
                     RecordFile::Open(path, records->format_->framing(), file_system));
    RETURN_IF_ERROR(records->Add(std::move(file), max_bad_records));
  }
  return records;
}

absl::Status FileRecords::Add(std::unique_ptr<RecordFile> content, int64_t max_bad_records) {
  File file = {std::move(content), {}};
  RETURN_IF_ERROR(CheckFirst(*file.content, max_bad_records == 0));
  if (max_bad_records > 0) {
    const int64_t most = max_bad_records - bad_records_;
    ASSIGN_OR_RETURN(file.left_out, FindBadRecords(*file.content, most, max_bad_records));
  }
  bad_records_ += static_cast<int64_t>(file.left_out.size());
  if (format_->has_header()) file.left_out.insert(file.left_out.begin(), 0);
  const auto left_out = static_cast<int64_t>(file.left_out.size());
  begins_.push_back(begins_.back() + file.content->num_records() - left_out);
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status FileRecords::CheckFirst(const RecordFile& file, bool record) const {
  RecordFile::Reader reader(&file);
  RecordError error;
  if (format_->has_header()) {
    ASSIGN_OR_RETURN(const absl::string_view header, reader.Record(0));
    if (!format_->CheckHeader(header, &error)) return NotARecord(reader, error);
  }
  const int64_t first = format_->has_header() ? 1 : 0;
  if (!record || first == file.num_records()) return absl::OkStatus();
  Batch batch;
  Resize(1, format_->schema(), &batch);
  ASSIGN_OR_RETURN(const absl::string_view bytes, reader.Record(first));
  return format_->Parse(bytes, 0, &batch, &error) ? absl::OkStatus() : NotARecord(reader, error);
}

absl::StatusOr<std::vector<int64_t>> FileRecords::FindBadRecords(const RecordFile& file,
                                                                 int64_t most,
                                                                 int64_t max_bad_records) const {
  constexpr int64_t kRows = 64;
  std::optional<std::vector<int64_t>> known = file.KnownBadRecords(format_->fingerprint());
  if (known.has_value() && static_cast<int64_t>(known->size()) <= most) return *std::move(known);
  Batch batch;
  RecordFile::Reader reader(&file);
  std::vector<int64_t> bad;
  std::string first;
  const int64_t begin = format_->has_header() ? 1 : 0;
  for (int64_t n = begin; n < file.num_records(); ++n) {
    const int64_t row = (n - begin) % kRows;
    if (row == 0) Resize(kRows, format_->schema(), &batch);
    ASSIGN_OR_RETURN(const absl::string_view bytes, reader.Record(n));
    RecordError error;
    if (format_->Parse(bytes, row, &batch, &error)) continue;
    if (static_cast<int64_t>(bad.size()) == most) {
      RETURN_IF_ERROR(file.CheckUnchanged());
      return NotARecord(reader, error,
                        absl::StrCat("; it is one bad record more than data.max_bad_records (",
                                     max_bad_records, ")"));
    }
    if (bad.empty()) first = std::string(NotARecord(reader, error).message());
    bad.push_back(n);
  }
  RETURN_IF_ERROR(file.CheckUnchanged());
  if (!bad.empty()) {
    LogWarning(file.path(), ": ", bad.size(), " of ", file.num_records() - begin, " ",
               file.framing().noun(), "s are left out, as they are no records; the first: ", first);
  }
  file.StoreBadRecords(bad, format_->fingerprint());
  return bad;
}

std::string FileRecords::where() const {
  return FilesText(files_.front().content->path(), files_.size());
}

absl::Status FileRecords::Read(absl::Span<const int64_t> records, Batch* batch) const {
  Prepare(static_cast<int64_t>(records.size()), batch);
  return ReadRows(records, 0, batch);
}

void FileRecords::Prepare(int64_t rows, Batch* batch) const {
  Resize(rows, format_->schema(), batch);
}

absl::Status FileRecords::ReadRows(absl::Span<const int64_t> records, int64_t first_row,
                                   Batch* batch) const {
  Readers readers(files_.size());
  absl::Status status;
  for (size_t i = 0; i < records.size() && status.ok(); ++i) {
    status = ReadRecord(records[i], first_row + static_cast<int64_t>(i), &readers, batch);
  }
  // A change says more than what it led to.
  for (size_t i = 0; i < files_.size(); ++i) {
    if (readers[i] != nullptr) RETURN_IF_ERROR(files_[i].content->CheckUnchanged());
  }
  return status;
}

absl::StatusOr<RecordColumns> FileRecords::ReadColumns(int64_t record) const {
  Readers readers(files_.size());
  RecordFile::Reader* reader = nullptr;
  const absl::StatusOr<absl::string_view> bytes = BytesOf(record, &readers, &reader);
  for (size_t i = 0; i < files_.size(); ++i) {
    if (readers[i] != nullptr) RETURN_IF_ERROR(files_[i].content->CheckUnchanged());
  }
  RETURN_IF_ERROR(bytes.status());
  return format_->Columns(*bytes);
}

absl::StatusOr<absl::string_view> FileRecords::BytesOf(int64_t record, Readers* readers,
                                                       RecordFile::Reader** reader) const {
  if (record < 0 || record >= size()) return NoRecord(record, size());
  const size_t i = std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1;
  const File& file = files_[i];
  std::unique_ptr<RecordFile::Reader>& of_file = (*readers)[i];
  if (of_file == nullptr) of_file = std::make_unique<RecordFile::Reader>(file.content.get());
  *reader = of_file.get();
  return of_file->Record(PositionOf(record - begins_[i], file.left_out));
}

absl::Status FileRecords::ReadRecord(int64_t record, int64_t row, Readers* readers,
                                     Batch* batch) const {
  RecordFile::Reader* reader = nullptr;
  ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(record, readers, &reader));
  RecordError error;
  return format_->Parse(bytes, row, batch, &error) ? absl::OkStatus() : NotARecord(*reader, error);
}

}  // namespace keelson
