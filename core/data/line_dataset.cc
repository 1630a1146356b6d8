#include "core/data/line_dataset.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

std::string ErrorText(const std::string& path, int64_t line, const LineError& error) {
  return absl::StrCat(path, ":", line + 1, ":", error.column, ": expected ", error.expected,
                      ", found ", error.found);
}

// The line that is the record of this number among those that are records: so many others are
// before it.
int64_t LineOf(int64_t record, const std::vector<int64_t>& other_lines) {
  int64_t low = 0, high = static_cast<int64_t>(other_lines.size());
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    // That many records are before this line.
    if (other_lines[middle] - middle <= record) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return record + low;
}

class LineDataset : public Dataset {
 public:
  LineDataset(std::shared_ptr<const LineRecords> records, int64_t begin, int64_t end)
      : records_(std::move(records)), begin_(begin), num_records_(end - begin) {}

  int64_t num_records() const override { return num_records_; }

  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    std::vector<int64_t> all(records.begin(), records.end());
    for (int64_t& record : all) {
      if (record < 0 || record >= num_records_) return NoRecord(record, num_records_);
      record += begin_;
    }
    return records_->Read(all, batch);
  }

 private:
  const std::shared_ptr<const LineRecords> records_;
  const int64_t begin_;
  const int64_t num_records_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const LineRecords>> LineRecords::Open(
    const std::vector<std::string>& paths, std::unique_ptr<const LineFormat> format,
    int64_t max_bad_records, FileSystem* file_system) {
  std::shared_ptr<LineRecords> records(new LineRecords(std::move(format)));
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<TextFile> file, TextFile::Open(path, file_system));
    RETURN_IF_ERROR(records->Add(std::move(file), max_bad_records));
  }
  return records;
}

absl::Status LineRecords::Add(std::unique_ptr<TextFile> text, int64_t max_bad_records) {
  File file = {std::move(text), {}};
  RETURN_IF_ERROR(CheckFirstLines(*file.text, max_bad_records == 0));
  if (max_bad_records > 0) {
    const int64_t most = max_bad_records - bad_records_;
    ASSIGN_OR_RETURN(file.other_lines, FindBadLines(*file.text, most, max_bad_records));
  }
  bad_records_ += static_cast<int64_t>(file.other_lines.size());
  if (format_->has_header()) file.other_lines.insert(file.other_lines.begin(), 0);
  const auto others = static_cast<int64_t>(file.other_lines.size());
  begins_.push_back(begins_.back() + file.text->num_lines() - others);
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status LineRecords::CheckFirstLines(const TextFile& file, bool record) const {
  TextFile::Reader reader(&file);
  LineError error;
  if (format_->has_header()) {
    ASSIGN_OR_RETURN(const absl::string_view header, reader.Line(0));
    if (!format_->CheckHeader(header, &error)) {
      return absl::InvalidArgumentError(ErrorText(file.path(), 0, error));
    }
  }
  const int64_t first = format_->has_header() ? 1 : 0;
  if (!record || first == file.num_lines()) return absl::OkStatus();
  Batch batch;
  Resize(1, format_->schema(), &batch);
  ASSIGN_OR_RETURN(const absl::string_view line, reader.Line(first));
  if (format_->Parse(line, 0, &batch, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(ErrorText(file.path(), first, error));
}

absl::StatusOr<std::vector<int64_t>> LineRecords::FindBadLines(const TextFile& text, int64_t most,
                                                               int64_t max_bad_records) const {
  constexpr int64_t kRows = 64;
  std::optional<std::vector<int64_t>> known = text.KnownBadLines(format_->fingerprint());
  if (known.has_value() && static_cast<int64_t>(known->size()) <= most) return *std::move(known);
  Batch batch;
  TextFile::Reader reader(&text);
  std::vector<int64_t> bad;
  std::string first;
  const int64_t begin = format_->has_header() ? 1 : 0;
  for (int64_t n = begin; n < text.num_lines(); ++n) {
    const int64_t row = (n - begin) % kRows;
    if (row == 0) Resize(kRows, format_->schema(), &batch);
    ASSIGN_OR_RETURN(const absl::string_view line, reader.Line(n));
    LineError error;
    if (format_->Parse(line, row, &batch, &error)) continue;
    const std::string message = ErrorText(text.path(), n, error);
    if (static_cast<int64_t>(bad.size()) == most) {
      RETURN_IF_ERROR(text.CheckUnchanged());
      return absl::InvalidArgumentError(
          absl::StrCat(message, "; it is one bad record more than data.max_bad_records (",
                       max_bad_records, ")"));
    }
    if (bad.empty()) first = message;
    bad.push_back(n);
  }
  RETURN_IF_ERROR(text.CheckUnchanged());
  if (!bad.empty()) {
    LogWarning(text.path(), ": ", bad.size(), " of ", text.num_lines(),
               " lines are left out, as they are no records; the first: ", first);
  }
  text.StoreBadLines(bad, format_->fingerprint());
  return bad;
}

std::string LineRecords::where() const {
  const std::string& first = files_.front().text->path();
  return files_.size() == 1 ? first : absl::StrCat(first, " and ", files_.size() - 1, " more");
}

absl::Status LineRecords::Read(absl::Span<const int64_t> records, Batch* batch) const {
  Readers readers(files_.size());
  const absl::Status status = ReadRecords(records, &readers, batch);
  // A change says more than what it led to.
  for (size_t i = 0; i < files_.size(); ++i) {
    if (readers[i] != nullptr) RETURN_IF_ERROR(files_[i].text->CheckUnchanged());
  }
  return status;
}

absl::Status LineRecords::ReadRecords(absl::Span<const int64_t> records, Readers* readers,
                                      Batch* batch) const {
  Resize(static_cast<int64_t>(records.size()), format_->schema(), batch);
  for (size_t i = 0; i < records.size(); ++i) {
    RETURN_IF_ERROR(ReadRecord(records[i], static_cast<int64_t>(i), readers, batch));
  }
  return absl::OkStatus();
}

absl::Status LineRecords::ReadRecord(int64_t record, int64_t row, Readers* readers,
                                     Batch* batch) const {
  if (record < 0 || record >= size()) return NoRecord(record, size());
  const size_t i = std::upper_bound(begins_.begin(), begins_.end(), record) - begins_.begin() - 1;
  const File& file = files_[i];
  std::unique_ptr<TextFile::Reader>& reader = (*readers)[i];
  if (reader == nullptr) reader = std::make_unique<TextFile::Reader>(file.text.get());
  const int64_t n = LineOf(record - begins_[i], file.other_lines);
  ASSIGN_OR_RETURN(const absl::string_view line, reader->Line(n));
  LineError error;
  if (format_->Parse(line, row, batch, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(ErrorText(file.text->path(), n, error));
}

std::unique_ptr<Dataset> NewLineDataset(std::shared_ptr<const LineRecords> records, int64_t begin,
                                        int64_t end) {
  return std::make_unique<LineDataset>(std::move(records), begin, end);
}

}  // namespace keelson
