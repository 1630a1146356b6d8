// TFRecord framing: uint64 length, masked CRC-32C of the length, data, masked CRC-32C of the data;
// little-endian. Format: tensorflow/core/lib/io/record_writer.h.
#ifndef KEELSON_CORE_SUMMARY_TF_RECORD_H_
#define KEELSON_CORE_SUMMARY_TF_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

inline constexpr size_t kTfRecordHeaderBytes = sizeof(uint64_t) + sizeof(uint32_t);
inline constexpr size_t kTfRecordFooterBytes = sizeof(uint32_t);

// The length of the data behind a header. Nullopt: its checksum is wrong.
std::optional<uint64_t> TfRecordLength(absl::string_view header);
// Whether the checksum behind data is theirs.
bool IsTfRecordSound(absl::string_view data, absl::string_view footer);

// One record with its frame.
std::string EncodeTfRecord(absl::string_view data);

// All records of a file. DATA_LOSS, with the file and the offset of the record: a checksum is
// wrong or the file ends within a record. Otherwise as file_system.h.
absl::StatusOr<std::vector<std::string>> ReadTfRecords(
    const std::string& path, FileSystem* file_system = FileSystem::Real());

// The records in the first bytes of a file: those before the first damage, or the first that is not
// whole.
std::vector<std::string> UndamagedTfRecords(absl::string_view content);
// Those of a file; readers stop there.
absl::StatusOr<std::vector<std::string>> ReadUndamagedTfRecords(const std::string& path,
                                                                FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_TF_RECORD_H_
