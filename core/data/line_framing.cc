#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/data/record_framing.h"

namespace keelson {
namespace {

// Takes a file's bytes in order and notes where lines begin.
class LineIndexBuilder {
 public:
  explicit LineIndexBuilder(const std::string& path) : path_(path) { index_.offsets.clear(); }

  absl::Status Add(absl::string_view bytes) {
    if (end_ == 0 && absl::StartsWith(bytes, kByteOrderMark)) line_ = kByteOrderMark.size();
    const char* const begin = bytes.data();
    const char* const end = begin + bytes.size();
    for (const char* at = begin; at < end;) {
      const auto* const newline = static_cast<const char*>(std::memchr(at, '\n', end - at));
      if (newline == nullptr) break;
      at = newline + 1;
      RETURN_IF_ERROR(EndLine(end_ + static_cast<uint64_t>(at - begin)));
    }
    end_ += bytes.size();
    return CheckLength(end_);
  }

  RecordIndex Finish() {
    if (end_ > line_) AddLine();  // the last line has no "\n"
    index_.offsets.push_back(end_);
    return std::move(index_);
  }

 private:
  absl::Status EndLine(uint64_t end) {
    RETURN_IF_ERROR(CheckLength(end));
    AddLine();
    line_ = end;
    return absl::OkStatus();
  }

  void AddLine() {
    if (index_.num_records % RecordIndex::kRecordsPerOffset == 0) index_.offsets.push_back(line_);
    ++index_.num_records;
  }

  // Of the line that has begun.
  absl::Status CheckLength(uint64_t end) const {
    if (end <= line_ || end - line_ <= RecordIndex::kMaxRecordBytes) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_, ":", index_.num_records + 1, ": expected a line of at most ",
                     RecordIndex::kMaxRecordBytes, " bytes, found a longer one"));
  }

  const std::string& path_;
  RecordIndex index_;
  uint64_t line_ = 0;  // where the line begins that has not ended
  uint64_t end_ = 0;   // of what was added
};

class Lines : public RecordFraming {
 public:
  absl::string_view noun() const override { return "line"; }
  absl::string_view index_suffix() const override { return kLineIndexSuffix; }
  std::string Where(const std::string& path, int64_t record, uint64_t byte,
                    size_t column) const override {
    return absl::StrCat(path, ":", record + 1, ":", column);
  }

  absl::StatusOr<RecordIndex> BuildIndex(const RandomAccessFile& file) const override {
    constexpr uint64_t kPieceBytes = 1 << 20;
    std::string piece;
    LineIndexBuilder builder(file.path());
    for (uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
      piece.resize(std::min(kPieceBytes, file.size() - offset));
      RETURN_IF_ERROR(file.Read(offset, piece.size(), piece.data()));
      RETURN_IF_ERROR(builder.Add(piece));
    }
    return builder.Finish();
  }

  std::optional<Frame> First(absl::string_view bytes) const override {
    const auto* const end = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    if (end == nullptr) return std::nullopt;
    const auto size = static_cast<size_t>(end - bytes.data());
    return Frame{absl::StripSuffix(bytes.substr(0, size), "\r"), size + 1};
  }
};

}  // namespace

const RecordFraming& LineFraming() {
  static const Lines framing;
  return framing;
}

}  // namespace keelson
