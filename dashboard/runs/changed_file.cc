#include "dashboard/runs/changed_file.h"

#include <algorithm>
#include <memory>

#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {

std::optional<absl::StatusOr<std::string>> ChangedFile::Poll() {
  const absl::StatusOr<absl::Time> modified = file_system_->ModificationTime(path_);
  if (absl::IsNotFound(modified.status())) {
    const bool news = !polled_ || found_;
    polled_ = true;
    found_ = false;
    if (!news) return std::nullopt;
    return absl::StatusOr<std::string>(modified.status());
  }
  if (modified.ok() && found_ && !failed_ && *modified == modified_) return std::nullopt;
  polled_ = true;
  found_ = true;
  if (modified.ok()) modified_ = *modified;
  absl::StatusOr<std::string> content = ReadBoundedFile(path_, max_bytes_, file_system_);
  failed_ = !content.ok();
  return content;
}

absl::StatusOr<bool> FileTail::Read(size_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, file_system_->OpenForRead(path_));
  if (file->size() < offset_) Restart();
  const uint64_t left = file->size() - offset_;
  const size_t bytes = std::min<uint64_t>(left, max_bytes);
  if (bytes == 0) return false;
  const size_t old_size = pending_.size();
  pending_.resize(old_size + bytes);
  const absl::Status read = file->Read(offset_, bytes, pending_.data() + old_size);
  if (!read.ok()) {
    pending_.resize(old_size);
    return read;
  }
  offset_ += bytes;
  return bytes < left;
}

void FileTail::Restart() {
  offset_ = 0;
  pending_.clear();
}

void FileTail::ReadAgain() {
  offset_ = position();
  pending_.clear();
}

}  // namespace keelson
