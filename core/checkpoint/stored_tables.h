// Reads the rows of embedding tables from a bundle, partition by partition, however many shards
// have written it; from a delta, with those of its bases (snapshot_chain.h).
#ifndef KEELSON_CORE_CHECKPOINT_STORED_TABLES_H_
#define KEELSON_CORE_CHECKPOINT_STORED_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_chain.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// A table of a bundle.
struct StoredTable {
  // The rows that the bundle has of a partition are the tensors' rows [first_row, first_row +
  // rows).
  struct Partition {
    int64_t first_row = kUnknown;
    int64_t rows = 0;
    // With those of the bases.
    int64_t all_rows = 0;
    // Of a delta: where its erased ids are in their tensor.
    int64_t first_erased = 0;
    int64_t erased = 0;
  };
  static constexpr int64_t kUnknown = -1;

  TableSpec spec;
  uint64_t seed = 0;         // of the initial values
  uint64_t salt = 0;         // TableSalt
  int64_t total_rows = 0;    // of the bundle's tensors
  int64_t total_erased = 0;  // of a delta
  // Of those that were asked for, and others of the same shards.
  std::array<Partition, kRowPartitions> partitions = {};

  // Of those partitions, with those of the bases.
  int64_t AllRows() const;
};

// Immutable, and thread-safe.
class StoredTables {
 public:
  // Reads the states of the shards that had these partitions, in the bundle and its bases. `bundle`
  // outlives this. A bundle without tables has none. DATA_LOSS: the states make no sense together.
  // Errors of BundleReader, ParseShardState and OpenBase.
  static absl::StatusOr<StoredTables> Open(const BundleReader* bundle,
                                           RowPartitionRun wanted = {0, kRowPartitions});

  // By name.
  const std::vector<StoredTable>& tables() const { return tables_; }
  // The ghosts of tables, as tables of dim 0 (GhostsOf).
  const std::vector<StoredTable>& ghosts() const { return ghosts_; }
  // Null: the bundle has no such table, or ghosts.
  const StoredTable* Find(absl::string_view name) const;
  // The highest of the shards whose states were read (ShardState.steps_done).
  int64_t steps_done() const { return steps_done_; }
  // What the partition had applied.
  std::vector<v1::ShardState::WorkerSequence> AppliedBy(uint32_t partition) const;

  // INVALID_ARGUMENT, with the table's name, what was expected and found: its rows have another
  // dim, or its absent rows other values.
  absl::Status CheckSame(const StoredTable& table, const TableSpec& spec, uint64_t seed) const;

  // What the bundle is a delta on; null: it is whole.
  const StoredTables* base() const { return base_.get(); }
  const v1::SnapshotBase* base_name() const;

  // The slots whose tensors the bundle has: what has the table's name and its number of rows, and
  // is neither a variable nor another of its columns. Their initial values are not known.
  std::vector<TableSlot> SlotsOf(const StoredTable& table) const;

  // Checks types and shapes of the table's tensors, in the bundle and its bases, and leaves in
  // `missing` the names of those of `slots` that are not there. INVALID_ARGUMENT: a slot has
  // another shape. DATA_LOSS: a column has, or is missing; a base has no such table.
  absl::Status CheckColumns(const StoredTable& table, absl::Span<const TableSlot> slots,
                            std::vector<std::string>* missing) const;

  // Reads the rows of a partition, of a delta with those of the bases; a slot that a bundle lacks
  // gets its initial value. The table has passed CheckColumns. DATA_LOSS, with the tensor: ids do
  // not ascend or are of another partition, or a checksum is wrong; a delta does not fit its base.
  // Other errors of BundleReader.
  absl::Status Read(const StoredTable& table, absl::Span<const TableSlot> slots, uint32_t partition,
                    TableColumns* columns) const;

  // The same of the rows that the bundle alone has, and the ids that it says were erased.
  absl::Status ReadOwn(const StoredTable& table, absl::Span<const TableSlot> slots,
                       uint32_t partition, TableColumns* columns) const;
  absl::StatusOr<std::vector<uint64_t>> ReadErased(const StoredTable& table,
                                                   uint32_t partition) const;

  // DATA_LOSS: the ids are not those of a partition, ascending; erased ones may be repeated.
  absl::Status CheckIds(const StoredTable& table, uint32_t partition,
                        absl::Span<const uint64_t> ids) const;
  absl::Status CheckErasedIds(const StoredTable& table, uint32_t partition,
                              absl::Span<const uint64_t> ids) const;

  const BundleReader& bundle() const { return *bundle_; }

 private:
  // A bundle of the chain, and its table.
  struct Link {
    const StoredTables* stored;
    const StoredTable* table;
  };

  explicit StoredTables(const BundleReader* bundle) : bundle_(bundle) {}

  // Of one bundle, without its bases.
  static absl::StatusOr<StoredTables> OpenOwn(const BundleReader* bundle, RowPartitionRun wanted);
  // Whether the chain may go on to this base behind so many links.
  absl::Status CheckChain(size_t links, const v1::SnapshotBase& base) const;
  absl::StatusOr<std::vector<uint64_t>> ReadIds(const std::string& tensor, int64_t first,
                                                int64_t count) const;
  // The chain of a table that has passed CheckColumns, the whole snapshot first.
  std::vector<Link> LinksOf(const StoredTable& table) const;
  absl::Status CheckIdsOf(absl::string_view tensor, const StoredTable& table, uint32_t partition,
                          absl::Span<const uint64_t> ids, bool repeated) const;
  // Where the partition's rows are in the chain.
  absl::StatusOr<std::vector<ChainedRow>> ChainRows(absl::Span<const Link> links,
                                                    uint32_t partition) const;
  absl::Status CheckOwnColumns(const StoredTable& table, absl::Span<const TableSlot> slots,
                               std::vector<std::string>* missing) const;

  absl::Status ReadStates(RowPartitionRun wanted);
  absl::Status AddState(const std::string& name, RowPartitionRun of_shard, v1::ShardState state);
  absl::Status AddTable(const std::string& name, const v1::ShardState& state,
                        const v1::ShardState::Table& from, std::vector<StoredTable>* tables);
  // Whether the rows of the table's partitions are known, and follow each other.
  absl::Status CheckPartitions(const StoredTable& table, RowPartitionRun wanted) const;
  absl::Status CheckTensor(const std::string& tensor, BundleDtype dtype, const Shape& shape) const;
  absl::Status Damaged(absl::string_view tensor, absl::string_view what) const;

  const BundleReader* bundle_;
  std::shared_ptr<const BundleReader> base_bundle_;  // which base_ reads
  std::shared_ptr<const StoredTables> base_;
  std::vector<v1::ShardState> states_;
  std::vector<StoredTable> tables_;
  std::vector<StoredTable> ghosts_;
  int64_t steps_done_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_STORED_TABLES_H_
