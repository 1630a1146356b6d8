#include "core/data/stream/stream_dataset.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {

void StreamDataset::SetFiles(absl::Span<const v1::StreamFile> files) {
  MutexLock lock(&mu_);
  std::vector<File> old = std::move(files_);
  files_.clear();
  for (const v1::StreamFile& range : files) {
    File file = {range, nullptr};
    for (File& known : old) {
      const bool same = known.range.name() == range.name() &&
                        known.range.begin() == range.begin() && known.range.end() == range.end();
      if (same) file.records = std::move(known.records);
    }
    files_.push_back(std::move(file));
  }
}

absl::StatusOr<const StreamDataset::File*> StreamDataset::FileOf(int64_t record) const {
  for (File& file : files_) {
    if (record < file.range.begin() || record >= file.range.end()) continue;
    if (file.records != nullptr) return &file;
    ASSIGN_OR_RETURN(file.records, directory_->Open(file.range.name()));
    const int64_t expected = file.range.end() - file.range.begin();
    if (file.records->size() == expected) return &file;
    return absl::FailedPreconditionError(
        absl::StrCat(directory_->PathOf(file.range.name()), ": expected ", expected,
                     " records, as the chief has found, found ", file.records->size()));
  }
  return NoRecord(record, files_.empty() ? 0 : files_.back().range.end());
}

absl::Status StreamDataset::Read(absl::Span<const int64_t> records, Batch* batch) const {
  MutexLock lock(&mu_);
  for (size_t i = 0; i < records.size();) {
    ASSIGN_OR_RETURN(const File* const file, FileOf(records[i]));
    if (i == 0) file->records->Prepare(static_cast<int64_t>(records.size()), batch);
    std::vector<int64_t> own;
    size_t end = i;
    while (end < records.size() && records[end] >= file->range.begin() &&
           records[end] < file->range.end()) {
      own.push_back(records[end++] - file->range.begin());
    }
    RETURN_IF_ERROR(file->records->ReadRows(own, static_cast<int64_t>(i), batch));
    i = end;
  }
  return absl::OkStatus();
}

}  // namespace keelson
