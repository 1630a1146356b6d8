// What the content of packed files has in common, whatever packs it.
#ifndef KEELSON_CORE_DATA_PACKED_STREAM_H_
#define KEELSON_CORE_DATA_PACKED_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/byte_stream.h"
#include "core/data/packed_input.h"

namespace keelson {

// Counts the content, and looks at its end. Not thread-safe.
class PackedStream : public ByteStream {
 public:
  absl::StatusOr<size_t> Read(size_t size, char* buffer) final;
  uint64_t max_content_bytes() const final { return kMaxUnpackedBytes; }
  absl::Status Finish() final;

 protected:
  // `cut_off`: what the error of content that lacks its end says; a literal.
  PackedStream(std::unique_ptr<RandomAccessFile> file, absl::string_view cut_off)
      : file_(std::move(file)), cut_off_(cut_off) {}

  // As Read.
  virtual absl::StatusOr<size_t> Unpack(size_t size, char* buffer) = 0;
  // What was unpacked so far may be all of it.
  virtual bool at_end() const = 0;

  PackedInput& file() { return file_; }
  const PackedInput& file() const { return file_; }
  // What earlier calls of Read have returned.
  uint64_t content_bytes() const { return content_bytes_; }

 private:
  PackedInput file_;
  const absl::string_view cut_off_;
  uint64_t content_bytes_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_PACKED_STREAM_H_
