// Blocks of leveldb's table format, of which no byte is trusted.
// Format: leveldb, doc/table_format.md.
#ifndef KEELSON_CORE_CHECKPOINT_TABLE_BLOCK_H_
#define KEELSON_CORE_CHECKPOINT_TABLE_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// A block's compression type (1 byte) and checksum follow its content.
inline constexpr uint64_t kTableBlockTrailerBytes = 5;

// Returns the content of `block`, which ends with its trailer. It is at most 22 times as long:
// snappy cannot compress further. DATA_LOSS, saying what is wrong: the checksum, a compression
// other than none and snappy, compressed bytes that are not snappy's.
absl::StatusOr<std::string> TableBlockContent(absl::string_view block);

// Calls `visit` for each entry of a block's content, in order, until it fails. `key` and `value`
// are valid during the call. DATA_LOSS: `content` is not a block. Otherwise what `visit` returns.
absl::Status ForEachTableEntry(
    absl::string_view content,
    absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)> visit);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_TABLE_BLOCK_H_
