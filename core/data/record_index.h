// Where the records of a file begin, so that any of them can be read without those before it.
#ifndef KEELSON_CORE_DATA_RECORD_INDEX_H_
#define KEELSON_CORE_DATA_RECORD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

struct RecordIndex {
  // One offset for so many records: 8 bytes for about 4 KB of a file whose records are 240 bytes
  // long, and as many bytes to read for one of its records.
  static constexpr int64_t kRecordsPerOffset = 16;
  // None has more bytes: of what is no text file a line would be endless.
  static constexpr uint64_t kMaxRecordBytes = 16 << 20;

  int64_t num_records = 0;
  // Where the records 0, kRecordsPerOffset, 2 * kRecordsPerOffset, … begin, and the end of the
  // file.
  std::vector<uint64_t> offsets = {0};
  // Those that are none, ascending. Of a format with this fingerprint, 0: nobody has looked.
  std::vector<int64_t> bad_records = {};
  uint64_t checked_format = 0;

  friend bool operator==(const RecordIndex&, const RecordIndex&) = default;
};

// What an index is of: another size or time is another file.
struct FileVersion {
  uint64_t size = 0;
  int64_t modified_nanos = 0;  // since 1970

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// The ends of the names of files that indexes are stored in, beside the files that they are of: of
// lines, and of TFRecord.
inline constexpr absl::string_view kLineIndexSuffix = ".keelson_lines";
inline constexpr absl::string_view kTfRecordIndexSuffix = ".keelson_records";

// A stored index: "KLSNLINE", then little-endian numbers of 64 bits: size and modification time of
// the file, kRecordsPerOffset, num_records, checked_format, the number of offsets, the offsets,
// the number of bad records, the bad records; then the masked CRC-32C of all that.
std::string EncodeRecordIndex(const RecordIndex& index, const FileVersion& version);
// Nullopt: damaged, in another form, or of another version of the file.
std::optional<RecordIndex> DecodeRecordIndex(absl::string_view bytes, const FileVersion& version);

// Whether a file in a directory of data is an index, or one that is being written.
bool IsRecordIndex(absl::string_view name);

// The index that is stored in the file `path`, if there is one for this version. What cannot be
// read is as if it were absent: it is built again.
std::optional<RecordIndex> LoadRecordIndex(const std::string& path, const FileVersion& version,
                                           FileSystem* file_system);
// Stores it in one step: readers see this one or that of before. Errors are the file system's.
absl::Status StoreRecordIndex(const std::string& path, const RecordIndex& index,
                              const FileVersion& version, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_INDEX_H_
