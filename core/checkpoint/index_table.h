// The index file of a bundle as a table of byte strings: leveldb's table format.
// Format: leveldb, doc/table_format.md; settings as tensorflow/core/lib/io/table_builder.cc.
#ifndef KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_
#define KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"

namespace keelson {

using IndexTable = std::map<std::string, std::string>;

// Writes beside `path` under a temporary name, syncs, renames over `path`, syncs the directory.
// Errors are those of file_system.h.
absl::Status WriteIndexTable(FileSystem* file_system, const std::string& path,
                             const IndexTable& table);

// Trusts no byte of the file. NOT_FOUND: no such file. DATA_LOSS, naming the file, the block and
// what is wrong: not such a table, or a byte of it has changed (every block's checksum is
// verified), blocks that overlap or reach beyond the file, keys out of order, a file above 1 GiB
// (an entry takes about 100 bytes) or entries that take above 16 times the file's size (and 1 MiB)
// in memory. Blocks may be of any size and compressed by snappy.
absl::StatusOr<IndexTable> ReadIndexTable(FileSystem* file_system, const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_
