// A file whose records are read by their numbers, in any order.
#ifndef KEELSON_CORE_DATA_RECORD_FILE_H_
#define KEELSON_CORE_DATA_RECORD_FILE_H_

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
#include "core/data/record_framing.h"
#include "core/data/record_index.h"

namespace keelson {

// A file of this size or more has its index stored beside it; that of a smaller one is built each
// time, which takes some milliseconds.
inline constexpr uint64_t kMinIndexedBytes = 64 << 20;

// A plain file stays where it is: readers read the parts that they need. A packed file (".gz",
// ".zst"), which has no random access, is unpacked into memory. Immutable; any number of threads
// may use it together.
class RecordFile {
 public:
  // Opens the file and loads or builds its index. An index that cannot be stored is kept in memory,
  // which the log says. `framing` and `file_system` outlive the file.
  // INVALID_ARGUMENT: it has no record. DATA_LOSS: as RecordFraming::BuildIndex; what is packed
  // is damaged or unpacks to more than kMaxUnpackedBytes. FAILED_PRECONDITION: it is not a regular
  // file, or was changed while its index was built. Others: the file system's.
  static absl::StatusOr<std::unique_ptr<RecordFile>> Open(
      const std::string& path, const RecordFraming& framing,
      FileSystem* file_system = FileSystem::Real(), uint64_t min_indexed_bytes = kMinIndexedBytes);

  const std::string& path() const { return path_; }
  const RecordFraming& framing() const { return framing_; }
  int64_t num_records() const { return index_.num_records; }
  // The records that are none of a format with this fingerprint, ascending, as the index that
  // is stored beside the file has them. Nullopt: it has not.
  std::optional<std::vector<int64_t>> KnownBadRecords(uint64_t format) const;
  // Stores them with the index, where that is stored.
  void StoreBadRecords(std::vector<int64_t> records, uint64_t format) const;

  // FAILED_PRECONDITION: the file is another one than that which was opened, or is gone. When this
  // holds after records were read, they were the file's.
  absl::Status CheckUnchanged() const;

  // Reads records; those that follow one another cost the least. Not thread-safe.
  class Reader {
   public:
    // `file` outlives the reader.
    explicit Reader(const RecordFile* file) : file_(file) {}

    // A record, which is in [0, num_records()), without its frame. It is valid until the next call,
    // and so is the byte behind it. DATA_LOSS: the file has become shorter, or the record is not as
    // it was written. FAILED_PRECONDITION: the file no longer has this record where it was.
    absl::StatusOr<absl::string_view> Record(int64_t record);
    // Where a column of the record is that was read last, for messages: "FILE:17:9".
    std::string Where(size_t column) const;

   private:
    absl::Status Load(size_t group);

    const RecordFile* const file_;
    std::string bytes_;    // of a group of records, and a "\n"
    uint64_t offset_ = 0;  // of the group in the file
    int64_t begin_ = 0;    // the first record of the group
    int64_t end_ = 0;      // behind its last one
    int64_t next_ = 0;     // the record that begins at position_
    size_t position_ = 0;  // in bytes_
    size_t last_ = 0;      // where the record begins that was read last
  };

 private:
  RecordFile(std::string path, const RecordFraming& framing, FileSystem* file_system,
             bool in_memory, FileVersion version, std::unique_ptr<RandomAccessFile> content)
      : path_(std::move(path)),
        framing_(framing),
        file_system_(file_system),
        in_memory_(in_memory),
        version_(version),
        content_(std::move(content)) {}

  absl::Status LoadIndex(uint64_t min_indexed_bytes);
  void StoreIndex(const RecordIndex& index) const;

  std::string IndexPath() const;

  const std::string path_;
  const RecordFraming& framing_;
  FileSystem* const file_system_;
  const bool in_memory_;
  const FileVersion version_;
  const std::unique_ptr<RandomAccessFile> content_;
  bool stored_ = false;  // the index is, beside the file
  RecordIndex index_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_FILE_H_
