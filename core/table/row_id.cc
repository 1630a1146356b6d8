#include "core/table/row_id.h"

#include "core/base/random.h"

namespace keelson {

uint64_t TableSalt(absl::string_view table) { return StableHash(table); }

RowPartitionRun RowPartitionsOfShard(size_t shard, size_t num_shards) {
  if (shard >= num_shards) return {};
  const auto first = static_cast<uint32_t>(uint64_t{kRowPartitions} * shard / num_shards);
  const auto end = static_cast<uint32_t>(uint64_t{kRowPartitions} * (shard + 1) / num_shards);
  return {first, end - first};
}

}  // namespace keelson
