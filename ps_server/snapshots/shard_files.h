// Writes a shard to a TensorBundle and restores it from one.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_SHARD_FILES_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_SHARD_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/checkpoint/bundle_writer.h"
#include "ps_server/snapshots/table_files.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

struct WrittenShard {
  std::vector<BundleIndexEntry> entries;
  int64_t bytes_written = 0;
};

// Writes a cut of `store` through `writer` and finishes it: values under the variables' names,
// slots as "<variable>/<Slot>" (moving averages have none), both as slices where the variable is
// partitioned; the rows of tables (table_files.h) in their `places`, of a delta what has changed;
// the shard's state (ShardStateName); and from shard 0 the optimizer's scalars. Rows are written
// once: their part of the cut ends. Errors of WriteTables and BundleDataWriter, and of `go_on`,
// which is called before each block and some rows are written and before the file gets its name:
// nothing is done after its first error.
absl::StatusOr<WrittenShard> WriteShard(
    const ShardStore& store, const ShardCut& cut, const TablePlaces& places,
    BundleDataWriter* writer,
    absl::FunctionRef<absl::Status()> go_on = [] { return absl::OkStatus(); });

// Makes a shard with the initial values of `seed`.
absl::StatusOr<std::unique_ptr<ShardStore>> InitializeShard(ShardStore::Options options,
                                                            uint64_t seed);

// Makes a shard with the values and slots of the bundle at `prefix`, which may have been written by
// any number of shards. Versions and applied sequences are kept where a block has the same elements
// as before; otherwise a block continues with the highest number of updates of those it is made of.
// Errors of StoredBlocks and RestoreTables, which has so many threads.
absl::StatusOr<std::unique_ptr<ShardStore>> RestoreShard(
    ShardStore::Options options, const std::string& prefix,
    FileSystem* file_system = FileSystem::Real(), int threads = 1);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_SHARD_FILES_H_
