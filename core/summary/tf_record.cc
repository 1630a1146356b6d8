#include "core/summary/tf_record.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "integers are copied as they lie");

constexpr size_t kHeaderBytes = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kFooterBytes = sizeof(uint32_t);

template <typename T>
absl::string_view AsBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <typename T>
T Load(absl::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

absl::Status BadRecord(absl::string_view path, size_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": record at byte ", offset, ": ", what));
}

// Returns the length in a record's header, checked against the rest of the file.
absl::StatusOr<size_t> ParseHeader(absl::string_view rest, absl::string_view path, size_t offset) {
  if (rest.size() < kHeaderBytes) return BadRecord(path, offset, "the file ends within its length");
  const absl::string_view length_bytes = rest.substr(0, sizeof(uint64_t));
  if (MaskCrc32c(Crc32c(length_bytes)) != Load<uint32_t>(rest.substr(sizeof(uint64_t)))) {
    return BadRecord(path, offset, "checksum mismatch of its length");
  }
  const uint64_t length = Load<uint64_t>(length_bytes);
  const size_t available = rest.size() - kHeaderBytes;
  if (available < kFooterBytes || length > available - kFooterBytes) {
    return BadRecord(path, offset, "the file ends within its data");
  }
  return length;
}

// Appends the records of a file up to its end, or up to the first damage, which is returned.
absl::Status ParseRecords(absl::string_view content, absl::string_view path,
                          std::vector<std::string>* records) {
  for (size_t offset = 0; offset < content.size();) {
    const absl::string_view rest = content.substr(offset);
    ASSIGN_OR_RETURN(const size_t length, ParseHeader(rest, path, offset));
    const absl::string_view data = rest.substr(kHeaderBytes, length);
    if (MaskCrc32c(Crc32c(data)) != Load<uint32_t>(rest.substr(kHeaderBytes + length))) {
      return BadRecord(path, offset, "checksum mismatch of its data");
    }
    records->emplace_back(data);
    offset += kHeaderBytes + length + kFooterBytes;
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeTfRecord(absl::string_view data) {
  const uint64_t length = data.size();
  const uint32_t length_crc = MaskCrc32c(Crc32c(AsBytes(length)));
  const uint32_t data_crc = MaskCrc32c(Crc32c(data));
  return absl::StrCat(AsBytes(length), AsBytes(length_crc), data, AsBytes(data_crc));
}

absl::StatusOr<std::vector<std::string>> ReadTfRecords(const std::string& path,
                                                       FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path, file_system));
  std::vector<std::string> records;
  RETURN_IF_ERROR(ParseRecords(content, path, &records));
  return records;
}

std::vector<std::string> UndamagedTfRecords(absl::string_view content) {
  std::vector<std::string> records;
  ParseRecords(content, /*path=*/"", &records).IgnoreError();
  return records;
}

absl::StatusOr<std::vector<std::string>> ReadUndamagedTfRecords(const std::string& path,
                                                                FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path, file_system));
  return UndamagedTfRecords(content);
}

}  // namespace keelson
