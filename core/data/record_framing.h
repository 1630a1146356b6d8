// How the records of a file lie in it, one behind the other.
#ifndef KEELSON_CORE_DATA_RECORD_FRAMING_H_
#define KEELSON_CORE_DATA_RECORD_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/record_index.h"

namespace keelson {

// Immutable; any number of threads may use it together.
class RecordFraming {
 public:
  struct Frame {
    absl::string_view record;
    size_t size = 0;  // of the record with its frame
  };

  virtual ~RecordFraming() = default;

  // What a record is called in messages, "line".
  virtual absl::string_view noun() const = 0;
  // The end of the names of files that indexes are stored in, beside those of the records.
  virtual absl::string_view index_suffix() const = 0;
  // Where the column of a record is that begins at a byte of the file, for messages: "FILE:17:9".
  virtual std::string Where(const std::string& path, int64_t record, uint64_t byte,
                            size_t column) const = 0;

  // Reads the file once, or of each record its frame alone. DATA_LOSS: a record has more than
  // RecordIndex::kMaxRecordBytes, a frame is damaged, or the file is shorter than it was when it
  // was opened.
  virtual absl::StatusOr<RecordIndex> BuildIndex(const RandomAccessFile& file) const = 0;

  // The record at the front of `bytes`, with "\n" behind a file's end. The byte behind the record
  // may be read. Nullopt: there is none, as the file is not the one of its index.
  virtual std::optional<Frame> First(absl::string_view bytes) const = 0;
  // Whether a record is as it was written, where the frame tells.
  virtual bool IsSound(const Frame& frame) const { return true; }
};

// UTF-8's, with which some programs begin a file.
inline constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// Lines of text, without their ends ("\n" or "\r\n"), of which the last one's may be the file's. A
// byte order mark at the file's begin is no part of the first line.
const RecordFraming& LineFraming();
// TFRecord (core/summary/tf_record.h).
const RecordFraming& TfRecordFraming();

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_FRAMING_H_
