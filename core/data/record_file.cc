#include "core/data/record_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"

namespace keelson {
namespace {

// The content of a packed file.
class UnpackedFile : public RandomAccessFile {
 public:
  UnpackedFile(const std::string& path, std::string content)
      : RandomAccessFile(path, content.size()), content_(std::move(content)) {}

  absl::Status Read(uint64_t offset, size_t size, char* buffer) const override {
    std::memcpy(buffer, content_.data() + offset, size);
    return absl::OkStatus();
  }

 private:
  const std::string content_;
};

absl::StatusOr<std::unique_ptr<RandomAccessFile>> Unpack(const std::string& path,
                                                         FileSystem* file_system) {
  constexpr size_t kPieceBytes = 1 << 20;
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenByteStream(path, file_system));
  std::string content;
  for (size_t done = 0;;) {
    content.resize(done + kPieceBytes);
    ASSIGN_OR_RETURN(const size_t n, stream->Read(kPieceBytes, content.data() + done));
    done += n;
    if (done > stream->max_content_bytes()) {
      return absl::DataLossError(absl::StrCat(path, ": expected at most ",
                                              stream->max_content_bytes(),
                                              " bytes in a packed file, found more; unpack it"));
    }
    if (n == kPieceBytes) continue;
    content.resize(done);
    break;
  }
  RETURN_IF_ERROR(stream->Finish());
  content.shrink_to_fit();
  return std::make_unique<UnpackedFile>(path, std::move(content));
}

absl::StatusOr<int64_t> ModifiedNanos(const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const absl::Time time, file_system->ModificationTime(path));
  return absl::ToUnixNanos(time);
}

absl::Status Changed(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": expected the file as it was when it was opened, found it changed"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordFile>> RecordFile::Open(const std::string& path,
                                                             const RecordFraming& framing,
                                                             FileSystem* file_system,
                                                             uint64_t min_indexed_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> content, file_system->OpenForRead(path));
  // The time is taken once the file is open: one that replaces it later has another.
  FileVersion version;
  version.size = content->size();
  ASSIGN_OR_RETURN(version.modified_nanos, ModifiedNanos(path, file_system));
  const bool in_memory = HasPackedSuffix(path);
  if (in_memory) {
    ASSIGN_OR_RETURN(content, Unpack(path, file_system));
  }
  std::unique_ptr<RecordFile> file(
      new RecordFile(path, framing, file_system, in_memory, version, std::move(content)));
  RETURN_IF_ERROR(file->LoadIndex(min_indexed_bytes));
  if (file->num_records() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected one ", framing.noun(), " or more, found an empty file"));
  }
  return file;
}

absl::Status RecordFile::LoadIndex(uint64_t min_indexed_bytes) {
  stored_ = !in_memory_ && version_.size >= min_indexed_bytes;
  if (stored_) {
    std::optional<RecordIndex> index = LoadRecordIndex(IndexPath(), version_, file_system_);
    if (index.has_value()) {
      index_ = *std::move(index);
      return absl::OkStatus();
    }
  }
  absl::StatusOr<RecordIndex> index = framing_.BuildIndex(*content_);
  // A change says more than what it led to.
  RETURN_IF_ERROR(CheckUnchanged());
  RETURN_IF_ERROR(index.status());
  index_ = *std::move(index);
  if (stored_) StoreIndex(index_);
  return absl::OkStatus();
}

std::optional<std::vector<int64_t>> RecordFile::KnownBadRecords(uint64_t format) const {
  if (index_.checked_format != format) return std::nullopt;
  return index_.bad_records;
}

void RecordFile::StoreBadRecords(std::vector<int64_t> records, uint64_t format) const {
  if (!stored_) return;
  RecordIndex index = index_;
  index.bad_records = std::move(records);
  index.checked_format = format;
  StoreIndex(index);
}

void RecordFile::StoreIndex(const RecordIndex& index) const {
  const absl::Status status = StoreRecordIndex(IndexPath(), index, version_, file_system_);
  if (status.ok()) return;
  LogInfo(path_, ": each task that opens it builds its index, which cannot be stored beside it: ",
          status.message());
}

std::string RecordFile::IndexPath() const { return absl::StrCat(path_, framing_.index_suffix()); }

absl::Status RecordFile::CheckUnchanged() const {
  if (in_memory_) return absl::OkStatus();
  const absl::StatusOr<int64_t> modified = ModifiedNanos(path_, file_system_);
  if (absl::IsNotFound(modified.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": expected the file as it was when it was opened, found none"));
  }
  RETURN_IF_ERROR(modified.status());
  return *modified == version_.modified_nanos ? absl::OkStatus() : Changed(path_);
}

absl::StatusOr<absl::string_view> RecordFile::Reader::Record(int64_t record) {
  if (record < begin_ || record >= end_) {
    RETURN_IF_ERROR(Load(static_cast<size_t>(record / RecordIndex::kRecordsPerOffset)));
  } else if (record < next_) {
    next_ = begin_;
    position_ = 0;
  }
  const RecordFraming& framing = file_->framing_;
  for (;;) {
    const std::optional<RecordFraming::Frame> frame =
        framing.First(absl::string_view(bytes_).substr(position_));
    if (!frame.has_value()) return Changed(file_->path());
    last_ = position_;
    position_ += frame->size;
    if (next_++ < record) continue;
    if (framing.IsSound(*frame)) return frame->record;
    return absl::DataLossError(
        absl::StrCat(Where(1), ": expected data that fits its checksum, found other data"));
  }
}

std::string RecordFile::Reader::Where(size_t column) const {
  return file_->framing_.Where(file_->path(), next_ - 1, offset_ + last_, column);
}

absl::Status RecordFile::Reader::Load(size_t group) {
  const RecordIndex& index = file_->index_;
  const uint64_t begin = index.offsets[group];
  const size_t size = index.offsets[group + 1] - begin;
  begin_ = end_ = 0;  // nothing is there until all of it is
  bytes_.resize(size + 1);
  RETURN_IF_ERROR(file_->content_->Read(begin, size, bytes_.data()));
  bytes_[size] = '\n';
  offset_ = begin;
  begin_ = next_ = static_cast<int64_t>(group) * RecordIndex::kRecordsPerOffset;
  end_ = std::min(begin_ + RecordIndex::kRecordsPerOffset, index.num_records);
  position_ = 0;
  return absl::OkStatus();
}

}  // namespace keelson
