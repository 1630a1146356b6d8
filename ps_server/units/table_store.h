// The rows of a shard's tables: those of the virtual partitions that the shard has.
#ifndef KEELSON_PS_SERVER_UNITS_TABLE_STORE_H_
#define KEELSON_PS_SERVER_UNITS_TABLE_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/thread_pool.h"
#include "core/cluster/placement.h"
#include "core/optim/learning_rate.h"
#include "core/optim/table_optimizers.h"
#include "core/table/row_id.h"
#include "core/table/row_memory.h"
#include "core/table/row_sections.h"
#include "ps_server/units/applied_sequences.h"
#include "ps_server/units/hot_ids.h"
#include "ps_server/units/row_sweep.h"
#include "ps_server/units/table_partition.h"

namespace keelson {

class TableStore;

// All rows of a shard's tables at one instant. Ends with its last holder, and when the next one is
// taken; the store outlives it.
class TableCut {
 public:
  ~TableCut();
  TableCut(const TableCut&) = delete;
  TableCut& operator=(const TableCut&) = delete;

  // Which rows of the cut are meant.
  enum class Part {
    kAll,
    kChanged,  // since the earlier cut that Cut was told; only where has_changes()
  };

  // The rows that a table has in the partition, which is one of the shard's.
  int64_t Rows(uint32_t partition, size_t table, Part part = Part::kAll) const;
  // Of all partitions.
  int64_t Rows(size_t table, Part part = Part::kAll) const;
  // Numbers the cuts of the store: see TableStore::Cut.
  uint64_t generation() const { return generation_; }
  // Whether the cut knows what has changed since the earlier one.
  bool has_changes() const { return has_changes_; }
  // Where has_changes(): how many ids were erased since; these, ascending. One may be there
  // repeatedly, and be among the changed rows.
  int64_t NumErased(uint32_t partition, size_t table) const;
  int64_t NumErased(size_t table) const;
  std::vector<uint64_t> Erased(uint32_t partition, size_t table) const;
  // Steps that had been done, which is what rows' last_step is compared with.
  int64_t steps_done() const { return steps_done_; }
  // See TablePartition::ReadCut.
  absl::Status Read(uint32_t partition, size_t table, TablePartition::RowVisitor visit,
                    absl::FunctionRef<absl::Status()> go_on, Part part = Part::kAll) const;
  // Drops what is kept of a partition, which is not read any more.
  void EndPartition(uint32_t partition) const;

 private:
  friend class TableStore;
  TableCut(const TableStore* store, uint64_t generation, uint64_t since)
      : store_(store), generation_(generation), since_(since) {}

  const TableCutSize& SizeOf(uint32_t partition, size_t table) const;

  const TableStore* const store_;
  const uint64_t generation_;
  const uint64_t since_;
  bool has_changes_ = false;
  int64_t steps_done_ = 0;
  std::vector<std::vector<TableCutSize>> sizes_;  // [partition of the shard][table]
};

// Thread-safe. Whoever changes rows holds the shard's ShardStore::PushScope.
class TableStore {
 public:
  struct Options {
    std::vector<TableSpec> tables;
    // Of the shard.
    RowPartitionRun partitions;
    uint64_t seed = 0;  // of initial values
    // The partitions are the units of the shard from this one on.
    size_t first_unit = 0;
    // Of rows and their indices.
    size_t max_bytes = std::numeric_limits<size_t>::max();
  };

  // All outlive the store.
  static absl::StatusOr<std::unique_ptr<TableStore>> Create(
      Options options, const TableOptimizers* optimizers, const LearningRateSchedule* learning_rate,
      AppliedSequences* sequences);

  // In the placement's order.
  absl::Span<const ServedTable> tables() const {
    return absl::MakeConstSpan(tables_).first(options_.tables.size());
  }
  // These, and behind them the ghosts of those of them that have some. What snapshots have of a
  // store is by these, and so are partitions and cuts.
  const std::vector<ServedTable>& tables_and_ghosts() const { return tables_; }
  const std::vector<WireTable>& wire_tables() const { return wire_tables_; }
  RowPartitionRun partitions() const { return options_.partitions; }
  // Of initial values.
  uint64_t seed() const { return options_.seed; }
  // One of the shard's; `partition` is its number among all.
  TablePartition* Partition(uint32_t partition) const {
    return partitions_[partition - options_.partitions.first].get();
  }
  // The unit of the partition in the shard's sequences.
  size_t UnitOf(uint32_t partition) const {
    return options_.first_unit + partition - options_.partitions.first;
  }

  // The time of an update of step `step` at this rate. Counts the step as done, if it is the
  // newest.
  RowTime UpdateAt(int64_t step, float learning_rate);
  // The time of a reader.
  RowTime ReadNow() const;

  // Steps that have been done: one more than the newest that an update belonged to.
  int64_t steps_done() const { return steps_done_.load(std::memory_order_relaxed); }
  void RestoreStepsDone(int64_t steps) { steps_done_ = steps; }

  // Does a part of the search for expired rows, if some is due, after an update of `ids` rows.
  void Sweep(size_t ids) { sweep_.Go(steps_done() - 1, ids); }

  // Whether each partition has exactly this many pushes in the round's sum; otherwise
  // FAILED_PRECONDITION, with the first that has not.
  absl::Status CheckContributions(const RoundId& round, uint32_t contributions) const;
  // Applies the means of the round's sums, at the rate of its step. No other thread uses `pool`.
  void CommitRound(const RoundId& round, float learning_rate, ThreadPool* pool);

  // While no row changes; ends the cut before. `changes.since` is the generation of an earlier cut
  // of this store.
  std::shared_ptr<const TableCut> Cut(const CutChanges& changes = {});

  // The table's ids that pushes have had most often since the store was made, estimated: counts are
  // of pushes.
  std::vector<HotIds::Count> Hottest(size_t table, size_t most) const;

  // Of each table, with its ghosts, over the shard's partitions.
  std::vector<TableSize> Sizes() const;

 private:
  friend class TableCut;
  // The tables of the options, and their ghosts.
  absl::Status AddTables(const TableOptimizers& optimizers);
  TableStore(Options options, const LearningRateSchedule* learning_rate)
      : options_(std::move(options)),
        learning_rate_(*learning_rate),
        memory_(options_.max_bytes),
        sweep_(&tables_, &partitions_) {}

  const Options options_;
  const LearningRateSchedule& learning_rate_;
  RowMemory memory_;
  std::vector<ServedTable> tables_;  // and ghosts
  std::vector<WireTable> wire_tables_;
  std::vector<std::unique_ptr<TablePartition>> partitions_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> steps_done_{0};
  RowSweep sweep_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_TABLE_STORE_H_
