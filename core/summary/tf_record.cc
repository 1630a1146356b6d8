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
  if (rest.size() < kTfRecordHeaderBytes)
    return BadRecord(path, offset, "the file ends within its length");
  const std::optional<uint64_t> length = TfRecordLength(rest.substr(0, kTfRecordHeaderBytes));
  if (!length.has_value()) return BadRecord(path, offset, "checksum mismatch of its length");
  const size_t available = rest.size() - kTfRecordHeaderBytes;
  if (available < kTfRecordFooterBytes || *length > available - kTfRecordFooterBytes) {
    return BadRecord(path, offset, "the file ends within its data");
  }
  return *length;
}

// Appends the records of a file up to its end, or up to the first damage, which is returned.
absl::Status ParseRecords(absl::string_view content, absl::string_view path,
                          std::vector<std::string>* records) {
  for (size_t offset = 0; offset < content.size();) {
    const absl::string_view rest = content.substr(offset);
    ASSIGN_OR_RETURN(const size_t length, ParseHeader(rest, path, offset));
    const absl::string_view data = rest.substr(kTfRecordHeaderBytes, length);
    if (!IsTfRecordSound(data, rest.substr(kTfRecordHeaderBytes + length, kTfRecordFooterBytes))) {
      return BadRecord(path, offset, "checksum mismatch of its data");
    }
    records->emplace_back(data);
    offset += kTfRecordHeaderBytes + length + kTfRecordFooterBytes;
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<uint64_t> TfRecordLength(absl::string_view header) {
  const absl::string_view length = header.substr(0, sizeof(uint64_t));
  if (MaskCrc32c(Crc32c(length)) != Load<uint32_t>(header.substr(sizeof(uint64_t)))) {
    return std::nullopt;
  }
  return Load<uint64_t>(length);
}

bool IsTfRecordSound(absl::string_view data, absl::string_view footer) {
  return MaskCrc32c(Crc32c(data)) == Load<uint32_t>(footer);
}

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
