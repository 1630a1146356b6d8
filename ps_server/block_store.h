// One shard of a model: the blocks of its partitions, and how they are filled, updated, read and
// cut. Knows neither messages nor files; shard_files.h moves it to and from disk.
#ifndef KEELSON_PS_SERVER_BLOCK_STORE_H_
#define KEELSON_PS_SERVER_BLOCK_STORE_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/cluster/placement.h"
#include "core/optim/learning_rate.h"
#include "core/optim/optimizer.h"
#include "ps_server/block.h"

namespace keelson {

// All blocks of a shard at one instant, no message of a push half applied. Holds the contents
// alive.
struct ShardCut {
  int64_t shard_step = 0;
  // [partition of the shard][block]
  std::vector<std::vector<BlockState>> partitions;
};

// Thread-safe.
class BlockStore {
 public:
  struct Options {
    Placement placement;
    int shard = 0;
    std::unique_ptr<Optimizer> optimizer;
    LearningRateSchedule learning_rate;
  };
  // What a block starts with: element positions are within the variable.
  struct BlockPosition {
    int variable = 0;
    int64_t first_element = 0;
    int64_t num_elements = 0;
  };
  using FillBlock = absl::FunctionRef<absl::Status(const BlockPosition&, BlockState*)>;

  // A shard whose blocks `fill` completes: it gets a block of zero values and initial slots, and
  // may replace all that the state holds. Returns the first error of `fill`.
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(Options options, int64_t shard_step,
                                                            FillBlock fill);

  // INVALID_ARGUMENT: no such block on this shard.
  absl::StatusOr<Block*> Find(int partition, int64_t block) const;
  // Elements of a block that Find knows.
  int64_t BlockElements(int partition, int64_t block) const {
    return options_.placement.BlockElements(partition, block);
  }

  // While it lives, no cut is taken: a push holds one over all blocks that it changes.
  class PushScope {
   public:
    explicit PushScope(BlockStore* store) : lock_(&store->cut_mu_) {}

   private:
    ReaderMutexLock lock_;
  };

  // Waits for the pushes that hold a PushScope; new ones wait for it.
  ShardCut Cut() const;

  // Counts a push as complete. Returns the number of pushes before it.
  int64_t CountPush() { return shard_step_.fetch_add(1, std::memory_order_relaxed); }
  int64_t shard_step() const { return shard_step_.load(std::memory_order_relaxed); }

  const Placement& placement() const { return options_.placement; }
  // Positions in the placement of this shard's partitions.
  const std::vector<int>& partitions() const { return partitions_; }
  int shard() const { return options_.shard; }
  const Optimizer& optimizer() const { return *options_.optimizer; }
  float LearningRateAt(int64_t step) const { return options_.learning_rate.At(step); }
  int64_t value_bytes() const { return options_.placement.ShardBytes(options_.shard); }
  int64_t slot_bytes() const {
    return value_bytes() * static_cast<int64_t>(optimizer().slots().size());
  }

 private:
  explicit BlockStore(Options options);

  const Options options_;
  const std::vector<int> partitions_;
  // Position in `blocks_` by partition of the placement; -1: another shard's.
  std::vector<int> local_;
  std::vector<std::vector<std::unique_ptr<Block>>> blocks_;

  mutable SharedMutex cut_mu_;
  std::atomic<int64_t> shard_step_{0};
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_BLOCK_STORE_H_
