// The assignment of the variables' rows, and of the tables', to shards.
#ifndef KEELSON_CORE_CLUSTER_PLACEMENT_H_
#define KEELSON_CORE_CLUSTER_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// Rows [row_begin, row_end) of a variable (axis 0), held by one shard. A scalar has one row.
struct Partition {
  size_t variable = 0;  // index into Placement::variables()
  size_t shard = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;

  friend bool operator==(const Partition& a, const Partition& b) {
    return a.variable == b.variable && a.shard == b.shard && a.row_begin == b.row_begin &&
           a.row_end == b.row_end;
  }
};

// The shards that are parameter servers', which are the first ones, and those after them, which are
// at tasks that train (docs/collective.md).
struct ShardGroups {
  size_t servers = 1;
  size_t workers = 0;
  // Whether a variable is placed on the workers' shards; null: none is where there are servers.
  std::function<bool(absl::string_view variable)> on_workers = nullptr;
};

// Immutable value; threads may read it together. A partition is addressed by its position p in
// partitions(), a block by (p, b); block b holds the elements [b * block_elements(), ...) of the
// partition, row-major, the last block the rest. Sizes are in elements (float32) unless they are
// called bytes.
class Placement {
 public:
  static constexpr int64_t kDefaultBlockElements = 262144;  // 1 MiB
  // A variable of at most this size is never split.
  static constexpr int64_t kMaxWholeBytes = 16 * 1024;

  // No variables, one shard.
  Placement() = default;

  // Longest processing time first (Graham 1969), ordered by the largest part that cannot be
  // divided: each variable goes to the least loaded shard, and what would lift that shard above
  // the mean goes on to the next, at row granularity, at most one partition per shard. So
  // max/mean bytes over shards <= 1.05 when the model has more than 1 MiB per shard and rows (and
  // variables of a single row) are small against that. The result does not depend on the order of
  // `variables`. `num_shards` >= 1, `block_elements` >= 1, names unique, extents >= 1. The rows of
  // tables are divided evenly by their ids; variables are placed as without tables.
  static Placement Compute(std::vector<VariableSpec> variables, size_t num_shards,
                           int64_t block_elements = kDefaultBlockElements,
                           std::vector<TableSpec> tables = {});
  // The same within each of the two groups: a variable lies on shards of its group alone, and each
  // group is balanced by itself. All variables and rows lie in the only group, if one has no
  // shards; otherwise rows lie on the servers'. At least one shard.
  static Placement ComputeIn(const ShardGroups& groups, std::vector<VariableSpec> variables,
                             int64_t block_elements = kDefaultBlockElements,
                             std::vector<TableSpec> tables = {});

  // INVALID_ARGUMENT, with the field: a number out of range, more than 65536 variables, 4096
  // tables, 2^20 partitions or 2^56 elements, a name missing, too long or given twice (a table may
  // not have a variable's), rows that are not covered exactly once in order, two partitions of a
  // variable on one shard, tables out of order.
  static absl::StatusOr<Placement> FromProto(const v1::Placement& proto);
  v1::Placement ToProto() const;

  // By name.
  const std::vector<VariableSpec>& variables() const { return variables_; }
  // By variable, then row.
  const std::vector<Partition>& partitions() const { return partitions_; }
  // By name.
  const std::vector<TableSpec>& tables() const { return tables_; }
  // What the rows of all tables are divided into: kRowPartitions, or 0 without tables.
  uint32_t row_partitions() const;
  size_t num_shards() const { return num_shards_; }
  // How many of the shards hold rows of tables, if there are tables; these are the first ones.
  size_t table_shards() const { return table_shards_; }
  int64_t block_elements() const { return block_elements_; }

  const Partition& partition(size_t p) const { return partitions_[p]; }
  // The variable that partition p is a part of.
  const VariableSpec& VariableOf(size_t p) const;
  int64_t PartitionElements(size_t p) const;
  // Where the partition starts within its variable.
  int64_t PartitionFirstElement(size_t p) const;
  int64_t NumBlocks(size_t p) const;
  int64_t BlockElements(size_t p, int64_t b) const;
  // Positions of the shard's partitions, ascending.
  std::vector<size_t> PartitionsOf(size_t shard) const;
  // Their elements, in the same order.
  std::vector<ElementRange> RangesOf(size_t shard) const;
  int64_t ShardBytes(size_t shard) const;

  // Those of the tables' rows that the shard holds; none without tables, and none of a shard behind
  // those of tables.
  RowPartitionRun RowPartitionsOf(size_t shard) const;
  // The shard that holds a row partition, which is less than row_partitions().
  size_t ShardOfRowPartition(uint32_t partition) const;

  // Equal for equal placements, on every machine.
  uint64_t Fingerprint() const;

  // The table that the chief prints: a line per partition (variable, shape, rows, shard, bytes, and
  // how it is updated: "optimizer" or "average 0.99"), then the bytes of each shard and max/mean,
  // and with tables a line with them.
  std::string ToTable() const;

 private:
  size_t num_shards_ = 1;
  size_t table_shards_ = 1;
  int64_t block_elements_ = kDefaultBlockElements;
  std::vector<VariableSpec> variables_;
  std::vector<Partition> partitions_;
  std::vector<TableSpec> tables_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_PLACEMENT_H_
