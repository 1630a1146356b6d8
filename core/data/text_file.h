// A text file whose lines are read by their numbers, in any order.
#ifndef KEELSON_CORE_DATA_TEXT_FILE_H_
#define KEELSON_CORE_DATA_TEXT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/line_index.h"

namespace keelson {

// A file of this size or more has its index stored beside it; that of a smaller one is built each
// time, which takes some milliseconds.
inline constexpr uint64_t kMinIndexedBytes = 64 << 20;

// A plain file stays where it is: readers read the parts that they need. A gzip file (".gz"), which
// has no random access, is unpacked into memory. Immutable; any number of threads may use it
// together.
class TextFile {
 public:
  // Opens the file and loads or builds its index. An index that cannot be stored is kept in memory,
  // which the log says. `file_system` outlives the file.
  // INVALID_ARGUMENT: it has no line. DATA_LOSS: a line is longer than LineIndex::kMaxLineBytes, a
  // gzip stream is damaged or unpacks to more than kMaxGzipContentBytes. FAILED_PRECONDITION: it is
  // not a regular file, or was changed while its index was built. Others: the file system's.
  static absl::StatusOr<std::unique_ptr<TextFile>> Open(
      const std::string& path, FileSystem* file_system = FileSystem::Real(),
      uint64_t min_indexed_bytes = kMinIndexedBytes);

  const std::string& path() const { return path_; }
  int64_t num_lines() const { return index_.num_lines; }
  // The lines that are no records of a format with this fingerprint, ascending, as the index that
  // is stored beside the file has them. Nullopt: it has not.
  std::optional<std::vector<int64_t>> KnownBadLines(uint64_t format) const;
  // Stores them with the index, where that is stored.
  void StoreBadLines(std::vector<int64_t> lines, uint64_t format) const;

  // FAILED_PRECONDITION: the file is another one than that which was opened, or is gone. When this
  // holds after lines were read, they were the file's.
  absl::Status CheckUnchanged() const;

  // Reads lines; those that follow one another cost the least. Not thread-safe.
  class Reader {
   public:
    // `file` outlives the reader.
    explicit Reader(const TextFile* file) : file_(file) {}

    // A line, which is in [0, num_lines()), without its end ("\n" or "\r\n"). It is valid until the
    // next call, and so is the byte behind it, "\n" or "\r". DATA_LOSS: the file has become
    // shorter. FAILED_PRECONDITION: it no longer has this line where it was.
    absl::StatusOr<absl::string_view> Line(int64_t line);

   private:
    absl::Status Load(size_t group);

    const TextFile* const file_;
    std::string bytes_;    // of a group of lines, and a "\n"
    int64_t begin_ = 0;    // the first line of the group
    int64_t end_ = 0;      // behind its last one
    int64_t next_ = 0;     // the line that begins at position_
    size_t position_ = 0;  // in bytes_
  };

 private:
  TextFile(std::string path, FileSystem* file_system, bool in_memory, FileVersion version,
           std::unique_ptr<RandomAccessFile> content)
      : path_(std::move(path)),
        file_system_(file_system),
        in_memory_(in_memory),
        version_(version),
        content_(std::move(content)) {}

  absl::Status LoadIndex(uint64_t min_indexed_bytes);
  void StoreIndex(const LineIndex& index) const;

  const std::string path_;
  FileSystem* const file_system_;
  const bool in_memory_;
  const FileVersion version_;
  const std::unique_ptr<RandomAccessFile> content_;
  bool stored_ = false;  // the index is, beside the file
  LineIndex index_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_TEXT_FILE_H_
