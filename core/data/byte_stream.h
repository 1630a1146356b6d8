// Reads a file's content from front to back, plain or gzip (RFC 1952), in bounded memory.
#ifndef KEELSON_CORE_DATA_BYTE_STREAM_H_
#define KEELSON_CORE_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"

namespace keelson {

// The content of a gzip file is at most 2 GiB.
inline constexpr uint64_t kMaxGzipContentBytes = uint64_t{1} << 31;

// Not thread-safe. Errors name the file; those of the system are file.h's.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Fills `buffer` with the next `size` bytes and returns how many there were: fewer only where the
  // content ends or is cut off. DATA_LOSS: what is there cannot be decoded.
  virtual absl::StatusOr<size_t> Read(size_t size, char* buffer) = 0;

  // The most bytes of content that a caller shall read. Of a plain file there are no more than its
  // size; a gzip file expands up to a thousand times, hence the limit.
  virtual uint64_t max_content_bytes() const = 0;

  // Call when all expected bytes were read. DATA_LOSS: there are more, or a gzip stream lacks its
  // end or has the wrong checksum or length.
  virtual absl::Status Finish() = 0;
};

// Decodes gzip when `path` ends in ".gz".
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(
    const std::string& path, FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_BYTE_STREAM_H_
