// The index file of a bundle as a table of byte strings: leveldb's table format.
// Format: leveldb, doc/table_format.md; settings as tensorflow/core/lib/io/table_builder.cc.
#ifndef KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_
#define KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace keelson {

using IndexTable = std::map<std::string, std::string>;

// Writes beside `path` under a temporary name, syncs, renames over `path`, syncs the directory.
// Errors are those of file.h.
absl::Status WriteIndexTable(const std::string& path, const IndexTable& table);

// NOT_FOUND: no such file. DATA_LOSS, naming the file: not such a table, or a byte of it has
// changed; every block's checksum is verified.
absl::StatusOr<IndexTable> ReadIndexTable(const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_INDEX_TABLE_H_
