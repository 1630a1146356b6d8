#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/record_framing.h"
#include "core/summary/tf_record.h"

namespace keelson {
namespace {

std::string PlaceOf(const std::string& path, int64_t record, uint64_t byte) {
  return absl::StrCat(path, ": record ", record + 1, " at byte ", byte);
}

// Walks through the frames of a file, of which it reads pieces.
class FrameWalk {
 public:
  explicit FrameWalk(const RandomAccessFile& file) : file_(file) {}

  // The size of the next record with its frame; record `record` begins at `offset`.
  absl::StatusOr<uint64_t> FrameSize(int64_t record, uint64_t offset) {
    const uint64_t left = file_.size() - offset;
    if (left < kTfRecordHeaderBytes) {
      return Damaged(record, offset, "a length with its checksum",
                     absl::StrCat("the end of the file after ", left, " bytes"));
    }
    ASSIGN_OR_RETURN(const absl::string_view header, Header(offset));
    const std::optional<uint64_t> length = TfRecordLength(header);
    if (!length.has_value()) return WrongLength(record, offset, header);
    if (*length > RecordIndex::kMaxRecordBytes) {
      return Damaged(record, offset,
                     absl::StrCat("at most ", RecordIndex::kMaxRecordBytes, " bytes"),
                     absl::StrCat(*length));
    }
    const uint64_t size = kTfRecordHeaderBytes + *length + kTfRecordFooterBytes;
    if (size <= left) return size;
    return Damaged(record, offset, absl::StrCat(size, " bytes"),
                   absl::StrCat("the end of the file after ", left));
  }

 private:
  absl::StatusOr<absl::string_view> Header(uint64_t offset) {
    constexpr uint64_t kPieceBytes = 1 << 20;
    if (offset < begin_ || offset + kTfRecordHeaderBytes > begin_ + piece_.size()) {
      piece_.resize(std::min(kPieceBytes, file_.size() - offset));
      begin_ = offset;
      RETURN_IF_ERROR(file_.Read(offset, piece_.size(), piece_.data()));
    }
    return absl::string_view(piece_).substr(offset - begin_, kTfRecordHeaderBytes);
  }

  absl::Status WrongLength(int64_t record, uint64_t offset, absl::string_view header) const {
    constexpr absl::string_view kGzip = "\x1f\x8b", kZstd = "\x28\xb5\x2f\xfd";
    const char* const packed =
        record > 0                        ? nullptr
        : absl::StartsWith(header, kGzip) ? "a gzip file whose name does not end with \".gz\""
        : absl::StartsWith(header, kZstd) ? "a zstd file whose name does not end with \".zst\""
                                          : nullptr;
    if (packed != nullptr) return Damaged(record, offset, "a TFRecord file", packed);
    return Damaged(record, offset, "a length that fits its checksum",
                   record == 0 ? "another one; is it a TFRecord file?" : "another one");
  }

  absl::Status Damaged(int64_t record, uint64_t offset, absl::string_view expected,
                       absl::string_view found) const {
    return absl::DataLossError(absl::StrCat(PlaceOf(file_.path(), record, offset), ": expected ",
                                            expected, ", found ", found));
  }

  const RandomAccessFile& file_;
  std::string piece_;
  uint64_t begin_ = 0;  // of the piece
};

class TfRecords : public RecordFraming {
 public:
  absl::string_view noun() const override { return "record"; }
  absl::string_view index_suffix() const override { return kTfRecordIndexSuffix; }
  std::string Where(const std::string& path, int64_t record, uint64_t byte,
                    size_t column) const override {
    return PlaceOf(path, record, byte);
  }

  absl::StatusOr<RecordIndex> BuildIndex(const RandomAccessFile& file) const override {
    RecordIndex index;
    index.offsets.clear();
    FrameWalk walk(file);
    for (uint64_t offset = 0; offset < file.size(); ++index.num_records) {
      if (index.num_records % RecordIndex::kRecordsPerOffset == 0) index.offsets.push_back(offset);
      ASSIGN_OR_RETURN(const uint64_t size, walk.FrameSize(index.num_records, offset));
      offset += size;
    }
    index.offsets.push_back(file.size());
    return index;
  }

  std::optional<Frame> First(absl::string_view bytes) const override {
    constexpr size_t kFrame = kTfRecordHeaderBytes + kTfRecordFooterBytes;
    if (bytes.size() < kFrame) return std::nullopt;
    const std::optional<uint64_t> length = TfRecordLength(bytes.substr(0, kTfRecordHeaderBytes));
    if (!length.has_value() || *length > bytes.size() - kFrame) return std::nullopt;
    return Frame{bytes.substr(kTfRecordHeaderBytes, *length), kFrame + *length};
  }

  bool IsSound(const Frame& frame) const override {
    return IsTfRecordSound(frame.record,
                           {frame.record.data() + frame.record.size(), kTfRecordFooterBytes});
  }
};

}  // namespace

const RecordFraming& TfRecordFraming() {
  static const TfRecords framing;
  return framing;
}

}  // namespace keelson
