#include "core/data/record_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "absl/strings/match.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie there");

constexpr absl::string_view kMagic = "KLSNLINE";
// Of a stored index: that of a file of 10^11 short lines has fewer.
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 36;

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
bool IsSound(const RecordIndex& index, const FileVersion& version) {
  if (index.num_records < 0 || index.offsets.empty() || index.offsets.back() != version.size) {
    return false;
  }
  const auto groups = static_cast<int64_t>(index.offsets.size()) - 1;
  const int64_t most = groups * RecordIndex::kRecordsPerOffset;
  if (index.num_records > most || index.num_records <= most - RecordIndex::kRecordsPerOffset)
    return false;
  if (!Ascends(index.offsets) || !Ascends(index.bad_records)) return false;
  if (index.bad_records.empty()) return true;
  return index.bad_records.front() >= 0 && index.bad_records.back() < index.num_records;
}

}  // namespace

std::string EncodeRecordIndex(const RecordIndex& index, const FileVersion& version) {
  std::string bytes(kMagic);
  for (const uint64_t number : {version.size, static_cast<uint64_t>(version.modified_nanos),
                                static_cast<uint64_t>(RecordIndex::kRecordsPerOffset),
                                static_cast<uint64_t>(index.num_records), index.checked_format,
                                static_cast<uint64_t>(index.offsets.size())}) {
    AppendNumber(number, &bytes);
  }
  for (const uint64_t offset : index.offsets) AppendNumber(offset, &bytes);
  AppendNumber(index.bad_records.size(), &bytes);
  for (const int64_t line : index.bad_records) AppendNumber(static_cast<uint64_t>(line), &bytes);
  const uint32_t crc = MaskCrc32c(Crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes;
}

std::optional<RecordIndex> DecodeRecordIndex(absl::string_view bytes, const FileVersion& version) {
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
  RecordIndex index;
  index.num_records = static_cast<int64_t>(reader.Next());
  index.checked_format = reader.Next();
  reader.Take(&index.offsets);
  reader.Take(&index.bad_records);
  const bool fits = reader.at_end() && found == version &&
                    lines_per_offset == static_cast<uint64_t>(RecordIndex::kRecordsPerOffset);
  if (!fits || !IsSound(index, version)) return std::nullopt;
  return index;
}

bool IsRecordIndex(absl::string_view name) {
  return absl::StrContains(name, kLineIndexSuffix) || absl::StrContains(name, kTfRecordIndexSuffix);
}

std::optional<RecordIndex> LoadRecordIndex(const std::string& path, const FileVersion& version,
                                           FileSystem* file_system) {
  const absl::StatusOr<std::string> bytes = ReadBoundedFile(path, kMaxIndexBytes, file_system);
  return bytes.ok() ? DecodeRecordIndex(*bytes, version) : std::nullopt;
}

absl::Status StoreRecordIndex(const std::string& path, const RecordIndex& index,
                              const FileVersion& version, FileSystem* file_system) {
  return WriteFileAtomically(path, EncodeRecordIndex(index, version), file_system);
}

}  // namespace keelson
