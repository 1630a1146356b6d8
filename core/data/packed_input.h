// The bytes of a packed file from front to back, for what unpacks them.
#ifndef KEELSON_CORE_DATA_PACKED_INPUT_H_
#define KEELSON_CORE_DATA_PACKED_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// Not thread-safe. Errors of reading are those of the file system.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}

  // The next bytes, 64 KiB but at the file's end, and none behind it; until the next call.
  absl::StatusOr<absl::string_view> Next();

  // "FILE: what".
  absl::Status DataLoss(absl::string_view what) const;
  // There is something behind the content of so many bytes.
  absl::Status TrailingBytes(uint64_t content_bytes) const;
  // There is no memory for what unpacks.
  absl::Status NoMemory(absl::string_view format) const;

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  std::vector<char> piece_;
  uint64_t position_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_PACKED_INPUT_H_
