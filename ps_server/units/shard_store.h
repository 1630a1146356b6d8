// One shard of a model: the blocks of its partitions and the rows of its tables; fills, updates,
// reads and cuts them.
// Independent of messages and files; shard_files.h writes and restores it.
#ifndef KEELSON_PS_SERVER_UNITS_SHARD_STORE_H_
#define KEELSON_PS_SERVER_UNITS_SHARD_STORE_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/cluster/placement.h"
#include "core/optim/learning_rate.h"
#include "core/optim/optimizer.h"
#include "core/optim/optimizer_groups.h"
#include "ps_server/units/applied_sequences.h"
#include "ps_server/units/block.h"
#include "ps_server/units/table_store.h"

namespace keelson {

// A round whose mean is in the values, and the number of its pushes.
struct CommittedRound {
  int64_t round = -1;          // -1: none
  uint32_t contributions = 0;  // 0: not known

  friend bool operator==(const CommittedRound&, const CommittedRound&) = default;
};

// Where a shard begins.
struct ShardProgress {
  int64_t shard_step = 0;
  CommittedRound committed = {};
};

// All blocks of a shard at one instant, at which no message of a push is partly applied. Holds the
// contents.
struct ShardCut {
  int64_t shard_step = 0;
  uint64_t changes = 0;
  CommittedRound committed;
  // [partition of the shard][block]
  std::vector<std::vector<BlockContentRef>> partitions;
  std::shared_ptr<const TableCut> tables;  // null: the model has none
  // By unit: blocks first, in the order of the partitions, then the tables' partitions.
  SequenceTable applied;
};

// What a block begins with.
struct BlockState {
  // The newest push of one incarnation that is in the content.
  struct Applied {
    uint64_t incarnation = 0;
    uint64_t sequence = 0;
  };
  BlockContentRef content;
  std::vector<Applied> applied;
};

// The bytes that a shard takes at least: values, slots, and what is kept of each block.
int64_t LeastBytesOf(const Placement& placement, size_t shard,
                     const VariableOptimizers& optimizers);

// Thread-safe.
class ShardStore {
 public:
  struct Options {
    Placement placement;
    size_t shard = 0;
    // Of the placement's variables.
    VariableOptimizers optimizers;
    // Of the placement's tables.
    TableOptimizers table_optimizers;
    LearningRateSchedule learning_rate;
    // Of the initial values of tables' rows.
    uint64_t seed = 0;
    // Of tables' rows and their indices.
    size_t max_table_bytes = std::numeric_limits<size_t>::max();
  };
  // The position of a block; element positions are within the variable.
  struct BlockPosition {
    size_t variable = 0;
    int64_t first_element = 0;
    int64_t num_elements = 0;
  };
  using FillBlock = absl::FunctionRef<absl::Status(const BlockPosition&, BlockState*)>;

  // Makes a shard whose blocks `fill` completes: it gets each block with zero values and initial
  // slots, and may replace all of its state. Tables have no rows yet. Returns the first error of
  // `fill`.
  static absl::StatusOr<std::unique_ptr<ShardStore>> Create(Options options,
                                                            const ShardProgress& progress,
                                                            FillBlock fill);

  // The shard's part of the tables; null: the model has none.
  TableStore* tables() const { return tables_.get(); }

  // INVALID_ARGUMENT: no such block on this shard.
  absl::StatusOr<Block*> Find(size_t partition, size_t block) const;
  // The number of elements of a block that Find finds.
  int64_t BlockElements(size_t partition, int64_t block) const {
    return options_.placement.BlockElements(partition, block);
  }

  // While a PushScope exists, no cut is taken, no round committed and no membership ended. A
  // push holds one while it changes blocks.
  class ABSL_SCOPED_LOCKABLE PushScope {
   public:
    explicit PushScope(ShardStore* store) ABSL_SHARED_LOCK_FUNCTION(store->cut_mu_)
        : store_(store) {
      store_->cut_mu_.ReaderLock();
    }
    ~PushScope() ABSL_UNLOCK_FUNCTION() { store_->cut_mu_.ReaderUnlock(); }
    PushScope(const PushScope&) = delete;
    PushScope& operator=(const PushScope&) = delete;

   private:
    ShardStore* const store_;
  };

  // Whether the incarnation is a member's. Call in a PushScope: while this is true there, a
  // SetMembers without it has not returned yet.
  bool IsMember(uint64_t incarnation) const ABSL_SHARED_LOCKS_REQUIRED(cut_mu_) {
    return std::binary_search(members_.begin(), members_.end(), incarnation);
  }
  // Makes `round`, which must not be older than the newest, the shard's newest round. Call in a
  // PushScope. FAILED_PRECONDITION: the round is committed already, or a newer round or attempt has
  // begun. UNAVAILABLE: the round before has not been committed here yet, although others have done
  // so, and its sums would be dropped.
  absl::Status EnterRound(const RoundId& round) ABSL_SHARED_LOCKS_REQUIRED(cut_mu_);

  // Call in a PushScope. UNAVAILABLE: the last cut has been taken (EndAtNextCut).
  absl::Status CheckOpen() const ABSL_SHARED_LOCKS_REQUIRED(cut_mu_);
  // Lets the next cut be the last: nothing is applied after it, so that it misses nothing.
  void EndAtNextCut() { ends_ = true; }
  // Call in a PushScope with each message that blocks apply.
  void CountChange() ABSL_SHARED_LOCKS_REQUIRED(cut_mu_) { ++changes_; }
  // Messages of pushes, and committed rounds, that blocks have applied since the shard was made.
  uint64_t changes() const { return changes_; }
  // Whether a snapshot of `changes` changes has all that the shard has, and will have from the
  // pushes of a round that it holds. They are lost where the last cut was taken before their round.
  bool EndsWith(uint64_t changes) const;
  // If so, nothing is applied any more. Returns EndsWith(changes).
  bool EndIfSaved(uint64_t changes);

  // The next three wait for the pushes that hold a PushScope; new pushes wait for them.
  // `changes`: TableStore::Cut.
  ShardCut Cut(const CutChanges& changes = {}) const;
  // Makes these the members, in any order; there are none before. Blocks forget all others.
  void SetMembers(std::vector<uint64_t> incarnations);
  // Applies the mean of the round's sums as one update of every block and of the rows that the
  // pushes had, at the rate of step `round.round`, and counts one push. A round that was committed
  // before is a no-op. No other thread uses `pool` meanwhile. FAILED_PRECONDITION, and nothing is
  // applied: a block or partition of tables does not have exactly `contributions` pushes.
  // INVALID_ARGUMENT: `contributions` is 0. UNAVAILABLE: as in CheckOpen.
  absl::Status CommitRound(const RoundId& round, uint32_t contributions, ThreadPool* pool);
  // What CommitRound would return. Waits for nothing.
  absl::Status MayCommit(const RoundId& round, uint32_t contributions) const;

  // The elements of each block, in the order of the placement.
  std::vector<int64_t> BlockSizes() const;
  // Calls `read` with the sums of these blocks, numbered in that order, each under its block's
  // lock. What MayCommit has found complete stays so until the round is committed or begun again.
  // Errors of MayCommit.
  absl::Status ReadSums(const RoundId& round, uint32_t contributions, size_t first, size_t count,
                        absl::FunctionRef<void(const RoundSum& sum)> read) const;
  // Replaces what the blocks have of any round by these sums, one of each block.
  // FAILED_PRECONDITION: the round is over (EnterRound).
  absl::Status TakeSums(const RoundId& round, std::vector<std::unique_ptr<RoundSum>> sums);

  // Counts the round as committed, if it is newer than those that are: other shards have it, and
  // this one has lost its pushes, or its values are from before it.
  void SkipRounds(const CommittedRound& newest);

  // The newest round that was committed or skipped.
  CommittedRound committed() const;
  // The newest round that EnterRound has seen; its round is -1 if there was none.
  RoundId open_round() const;

  // Counts a push as complete. Returns the number of pushes before it.
  int64_t CountPush() { return shard_step_.fetch_add(1, std::memory_order_relaxed); }
  int64_t shard_step() const { return shard_step_.load(std::memory_order_relaxed); }

  const Placement& placement() const { return options_.placement; }
  // Positions in the placement of this shard's partitions.
  const std::vector<size_t>& partitions() const { return partitions_; }
  size_t shard() const { return options_.shard; }
  const VariableOptimizers& optimizers() const { return options_.optimizers; }
  // The optimizer of a partition of the placement.
  const Optimizer& OptimizerOf(size_t partition) const {
    return optimizers().Of(placement().partition(partition).variable);
  }
  float LearningRateAt(int64_t step) const { return options_.learning_rate.At(step); }
  int64_t value_bytes() const { return options_.placement.ShardBytes(options_.shard); }
  int64_t slot_bytes() const;
  size_t num_blocks() const { return num_blocks_; }

 private:
  absl::Status EnterRoundLocked(const RoundId& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(round_mu_);
  explicit ShardStore(Options options);
  absl::Status CreateTables();

  const Options options_;
  const std::vector<size_t> partitions_;
  // Position in `blocks_` by partition of the placement; nothing: another shard's.
  std::vector<std::optional<size_t>> local_;
  AppliedSequences applied_;
  std::vector<std::vector<std::unique_ptr<Block>>> blocks_;
  size_t num_blocks_ = 0;
  std::unique_ptr<TableStore> tables_;

  bool EndsWithLocked(uint64_t changes) const ABSL_SHARED_LOCKS_REQUIRED(cut_mu_);
  absl::Status MayCommitLocked(const RoundId& round, uint32_t contributions) const
      ABSL_SHARED_LOCKS_REQUIRED(cut_mu_);
  // "variable dense/kernel, block 2" of partition `p`.
  std::string NameOf(size_t p, size_t block) const;

  std::atomic<int64_t> shard_step_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<bool> ends_{false};

  mutable SharedMutex cut_mu_;
  std::vector<uint64_t> members_ ABSL_GUARDED_BY(cut_mu_);  // sorted
  mutable bool ended_ ABSL_GUARDED_BY(cut_mu_) = false;     // by the last cut

  mutable Mutex round_mu_;  // after cut_mu_
  RoundId open_round_ ABSL_GUARDED_BY(round_mu_);
  CommittedRound committed_ ABSL_GUARDED_BY(round_mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_SHARD_STORE_H_
