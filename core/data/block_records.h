// Records of files that are read block by block, as columns.
#ifndef KEELSON_CORE_DATA_BLOCK_RECORDS_H_
#define KEELSON_CORE_DATA_BLOCK_RECORDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/columns/block_file.h"
#include "core/data/columns/record_maker.h"
#include "core/data/readable_records.h"

namespace keelson {

// So many bytes of blocks are kept, those that were used last.
inline constexpr uint64_t kBlockCacheBytes = uint64_t{1} << 30;

// The records that `maker` makes of the files' columns. With `max_bad_records` 0 only the first
// record of each file is tried here; with more, all are, and those that are none are left out.
// `files` is not empty.
// INVALID_ARGUMENT, "FILE: record N: expected …, found …": one is no record, and there are more of
// them than allowed; a file has none. Others: BlockFile's.
absl::StatusOr<std::shared_ptr<const ReadableRecords>> OpenBlockRecords(
    std::vector<std::unique_ptr<BlockFile>> files, std::shared_ptr<const RecordMaker> maker,
    int64_t max_bad_records, uint64_t cache_bytes = kBlockCacheBytes);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_BLOCK_RECORDS_H_
