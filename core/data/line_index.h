// Where the lines of a text file begin, so that any of them can be read without those before it.
#ifndef KEELSON_CORE_DATA_LINE_INDEX_H_
#define KEELSON_CORE_DATA_LINE_INDEX_H_

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

// UTF-8's, with which some programs begin a file.
inline constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// A line ends with "\n"; the last one may end with the file. A byte order mark (UTF-8) at the
// file's begin is no part of the first line.
struct LineIndex {
  // One offset for so many lines: 8 bytes for about 4 KB of a file whose lines are 240 bytes long,
  // and as many bytes to read for one of its lines.
  static constexpr int64_t kLinesPerOffset = 16;
  // No line is longer, with its end: what is no text file would be one endless line.
  static constexpr uint64_t kMaxLineBytes = 16 << 20;

  int64_t num_lines = 0;
  // Where the lines 0, kLinesPerOffset, 2 * kLinesPerOffset, … begin, and the end of the file.
  std::vector<uint64_t> offsets = {0};
  // Lines that are no records, ascending. Of a format with this fingerprint, 0: nobody has looked.
  std::vector<int64_t> bad_lines = {};
  uint64_t checked_format = 0;

  friend bool operator==(const LineIndex&, const LineIndex&) = default;
};

// Reads the file once, a piece at a time. DATA_LOSS: a line is too long, or the file is shorter
// than it was when it was opened.
absl::StatusOr<LineIndex> BuildLineIndex(const RandomAccessFile& file);

// What an index is of: another size or time is another file.
struct FileVersion {
  uint64_t size = 0;
  int64_t modified_nanos = 0;  // since 1970

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// The end of the names of files that indexes are stored in, beside their text files.
inline constexpr absl::string_view kLineIndexSuffix = ".keelson_lines";

// A stored index: "KLSNLINE", then little-endian numbers of 64 bits: size and modification time of
// the text file, kLinesPerOffset, num_lines, checked_format, the number of offsets, the offsets,
// the number of bad lines, the bad lines; then the masked CRC-32C of all that.
std::string EncodeLineIndex(const LineIndex& index, const FileVersion& version);
// Nullopt: damaged, in another form, or of another version of the file.
std::optional<LineIndex> DecodeLineIndex(absl::string_view bytes, const FileVersion& version);

// The index that is stored beside `path`, if there is one for this version. What cannot be read is
// as if it were absent: it is built again.
std::optional<LineIndex> LoadLineIndex(const std::string& path, const FileVersion& version,
                                       FileSystem* file_system);
// Stores it in one step: readers see this one or that of before. Errors are the file system's.
absl::Status StoreLineIndex(const std::string& path, const LineIndex& index,
                            const FileVersion& version, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_LINE_INDEX_H_
