#include "chief/coordination/stream_files.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {

absl::Status StreamFiles::Restore(const v1::JobState& state) {
  files_.assign(state.stream_files().begin(), state.stream_files().end());
  for (size_t i = 0; i < files_.size(); ++i) {
    const int64_t expected = i == 0 ? files_[0].begin() : files_[i - 1].end();
    const v1::StreamFile& file = files_[i];
    if (file.begin() == expected && file.begin() >= 0 && file.end() > file.begin()) continue;
    return absl::DataLossError(absl::StrCat("_keelson/job: stream_files[", i, "] ", file.name(),
                                            ": expected records [", expected, ", more), found [",
                                            file.begin(), ", ", file.end(), ")"));
  }
  return absl::OkStatus();
}

void StreamFiles::Add(std::string name, int64_t records) {
  v1::StreamFile file;
  file.set_name(std::move(name));
  file.set_begin(known());
  file.set_end(known() + records);
  files_.push_back(std::move(file));
}

void StreamFiles::AddFilesOf(const RecordRange& records, std::vector<v1::StreamFile>* files) const {
  for (const v1::StreamFile& file : files_) {
    if (file.end() <= records.begin || file.begin() >= records.end) continue;
    if (!files->empty() && files->back().begin() >= file.begin()) continue;
    files->push_back(file);
  }
}

std::vector<v1::StreamFile> StreamFiles::From(int64_t first) const {
  std::vector<v1::StreamFile> files;
  for (const v1::StreamFile& file : files_) {
    if (file.end() > first || &file == &files_.back()) files.push_back(file);
  }
  return files;
}

void StreamFiles::ForgetBefore(int64_t first) {
  while (files_.size() > 1 && files_.front().end() <= first) files_.pop_front();
}

}  // namespace keelson
