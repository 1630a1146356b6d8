// Which partition of a job's tables an id of a table belongs to. Everyone computes the same:
// servers, workers, the readers of snapshots. So these functions are part of the wire and of files,
// and never change.
#ifndef KEELSON_CORE_TABLE_ROW_ID_H_
#define KEELSON_CORE_TABLE_ROW_ID_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// The partitions that the rows of all tables of a job are divided into.
inline constexpr uint32_t kRowPartitions = 256;

// The distinct ids of a batch, per table of the placement: by partition, then ascending.
using RowIds = std::vector<std::vector<uint64_t>>;

// Partitions [first, first + count).
struct RowPartitionRun {
  uint32_t first = 0;
  uint32_t count = 0;

  friend bool operator==(const RowPartitionRun&, const RowPartitionRun&) = default;
};

// Those that shard `shard` holds where the first `num_shards` shards hold rows: as many as the
// others, one more or less; none of a shard behind them.
RowPartitionRun RowPartitionsOfShard(size_t shard, size_t num_shards);

// What makes the partitions of tables independent of each other.
uint64_t TableSalt(absl::string_view table);

// splitmix64's finaliser (Steele, Lea and Flood, OOPSLA 2014) of id ^ salt: a bijection, so that no
// two ids of a table have the same mix. Every id is valid.
constexpr uint64_t MixId(uint64_t id, uint64_t salt) {
  uint64_t mix = id ^ salt;
  mix = (mix ^ mix >> 30) * 0xbf58476d1ce4e5b9;
  mix = (mix ^ mix >> 27) * 0x94d049bb133111eb;
  return mix ^ mix >> 31;
}

// Of MixId's result: its upper 8 bits. The others are left for places within a partition.
constexpr uint32_t RowPartitionOf(uint64_t mixed) { return static_cast<uint32_t>(mixed >> 56); }

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_ID_H_
