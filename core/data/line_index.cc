#include "core/data/line_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie there");

constexpr absl::string_view kMagic = "KLSNLINE";
// Of a stored index: that of a text file of 10^11 short lines has fewer.
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 36;

// Takes a file's bytes in order and notes where lines begin.
class IndexBuilder {
 public:
  explicit IndexBuilder(const std::string& path) : path_(path) { index_.offsets.clear(); }

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

  LineIndex Finish() {
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
    if (index_.num_lines % LineIndex::kLinesPerOffset == 0) index_.offsets.push_back(line_);
    ++index_.num_lines;
  }

  // Of the line that has begun.
  absl::Status CheckLength(uint64_t end) const {
    if (end <= line_ || end - line_ <= LineIndex::kMaxLineBytes) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_, ":", index_.num_lines + 1, ": expected a line of at most ",
                     LineIndex::kMaxLineBytes, " bytes, found a longer one"));
  }

  const std::string& path_;
  LineIndex index_;
  uint64_t line_ = 0;  // where the line begins that has not ended
  uint64_t end_ = 0;   // of what was added
};

void AppendNumber(uint64_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Takes numbers from the front; once they do not suffice all are 0 and ok() is false.
class NumberReader {
 public:
  explicit NumberReader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t Next() {
    uint64_t number = 0;
    if (bytes_.size() < sizeof(number)) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&number, bytes_.data(), sizeof(number));
    bytes_.remove_prefix(sizeof(number));
    return number;
  }

  // A count of numbers, which follow it.
  template <typename Number>
  void Take(std::vector<Number>* numbers) {
    const uint64_t count = Next();
    if (count > bytes_.size() / sizeof(Number)) {
      ok_ = false;
      return;
    }
    numbers->resize(count);
    // Of an empty vector data() may be null, which memcpy must not get.
    if (count > 0) std::memcpy(numbers->data(), bytes_.data(), count * sizeof(Number));
    bytes_.remove_prefix(count * sizeof(Number));
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

template <typename Number>
bool Ascends(const std::vector<Number>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

// Whether a reader can rely on it.
bool IsSound(const LineIndex& index, const FileVersion& version) {
  if (index.num_lines < 0 || index.offsets.empty() || index.offsets.back() != version.size) {
    return false;
  }
  const auto groups = static_cast<int64_t>(index.offsets.size()) - 1;
  const int64_t most = groups * LineIndex::kLinesPerOffset;
  if (index.num_lines > most || index.num_lines <= most - LineIndex::kLinesPerOffset) return false;
  if (!Ascends(index.offsets) || !Ascends(index.bad_lines)) return false;
  if (index.bad_lines.empty()) return true;
  return index.bad_lines.front() >= 0 && index.bad_lines.back() < index.num_lines;
}

std::string IndexPath(const std::string& path) { return absl::StrCat(path, kLineIndexSuffix); }

}  // namespace

absl::StatusOr<LineIndex> BuildLineIndex(const RandomAccessFile& file) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  std::string piece;
  IndexBuilder builder(file.path());
  for (uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
    piece.resize(std::min(kPieceBytes, file.size() - offset));
    RETURN_IF_ERROR(file.Read(offset, piece.size(), piece.data()));
    RETURN_IF_ERROR(builder.Add(piece));
  }
  return builder.Finish();
}

std::string EncodeLineIndex(const LineIndex& index, const FileVersion& version) {
  std::string bytes(kMagic);
  for (const uint64_t number :
       {version.size, static_cast<uint64_t>(version.modified_nanos),
        static_cast<uint64_t>(LineIndex::kLinesPerOffset), static_cast<uint64_t>(index.num_lines),
        index.checked_format, static_cast<uint64_t>(index.offsets.size())}) {
    AppendNumber(number, &bytes);
  }
  for (const uint64_t offset : index.offsets) AppendNumber(offset, &bytes);
  AppendNumber(index.bad_lines.size(), &bytes);
  for (const int64_t line : index.bad_lines) AppendNumber(static_cast<uint64_t>(line), &bytes);
  const uint32_t crc = MaskCrc32c(Crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes;
}

std::optional<LineIndex> DecodeLineIndex(absl::string_view bytes, const FileVersion& version) {
  uint32_t crc = 0;
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < kMagic.size() + sizeof(crc)) {
    return std::nullopt;
  }
  const absl::string_view covered = bytes.substr(0, bytes.size() - sizeof(crc));
  std::memcpy(&crc, bytes.data() + covered.size(), sizeof(crc));
  if (crc != MaskCrc32c(Crc32c(covered))) return std::nullopt;
  NumberReader reader(covered.substr(kMagic.size()));
  FileVersion found;
  found.size = reader.Next();
  found.modified_nanos = static_cast<int64_t>(reader.Next());
  const uint64_t lines_per_offset = reader.Next();
  LineIndex index;
  index.num_lines = static_cast<int64_t>(reader.Next());
  index.checked_format = reader.Next();
  reader.Take(&index.offsets);
  reader.Take(&index.bad_lines);
  const bool fits = reader.at_end() && found == version &&
                    lines_per_offset == static_cast<uint64_t>(LineIndex::kLinesPerOffset);
  if (!fits || !IsSound(index, version)) return std::nullopt;
  return index;
}

std::optional<LineIndex> LoadLineIndex(const std::string& path, const FileVersion& version,
                                       FileSystem* file_system) {
  const absl::StatusOr<std::string> bytes =
      ReadBoundedFile(IndexPath(path), kMaxIndexBytes, file_system);
  return bytes.ok() ? DecodeLineIndex(*bytes, version) : std::nullopt;
}

absl::Status StoreLineIndex(const std::string& path, const LineIndex& index,
                            const FileVersion& version, FileSystem* file_system) {
  return WriteFileAtomically(IndexPath(path), EncodeLineIndex(index, version), file_system);
}

}  // namespace keelson
