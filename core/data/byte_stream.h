// Reads a file's content from front to back, plain or packed: gzip (RFC 1952), zstd (RFC 8878).
// Memory is bounded.
#ifndef KEELSON_CORE_DATA_BYTE_STREAM_H_
#define KEELSON_CORE_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// The content of a packed file is at most 2 GiB.
inline constexpr uint64_t kMaxUnpackedBytes = uint64_t{1} << 31;

// The name of a file without the end that says how it is packed, ".gz" or ".zst"; as it is where it
// has none.
absl::string_view WithoutPackedSuffix(absl::string_view name);
inline bool HasPackedSuffix(absl::string_view name) {
  return WithoutPackedSuffix(name).size() < name.size();
}

// Not thread-safe. Errors name the file; those of the system are file.h's.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Fills `buffer` with the next `size` bytes and returns how many there were: fewer only where the
  // content ends or is cut off. DATA_LOSS: what is there cannot be decoded.
  virtual absl::StatusOr<size_t> Read(size_t size, char* buffer) = 0;

  // The most bytes of content that a caller shall read. Of a plain file there are no more than its
  // size; a packed file expands a thousand times and more, hence the limit.
  virtual uint64_t max_content_bytes() const = 0;

  // Call when all expected bytes were read. DATA_LOSS: there are more, or what is packed lacks its
  // end or has the wrong checksum or length.
  virtual absl::Status Finish() = 0;
};

// Unpacks gzip when `path` ends with ".gz", and zstd when it ends with ".zst".
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(
    const std::string& path, FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_BYTE_STREAM_H_
