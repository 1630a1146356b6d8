// Reads the blocks of a model from a bundle, however it was sharded when it was written, to restore
// a shard.
#ifndef KEELSON_CORE_CHECKPOINT_STORED_BLOCKS_H_
#define KEELSON_CORE_CHECKPOINT_STORED_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/optim/optimizer.h"
#include "core/tensor/variable.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// The name of a slot's tensor: "dense/kernel/Adam_1".
std::string SlotTensorName(absl::string_view variable, absl::string_view slot);

// The state of a block beside its elements.
struct StoredBlock {
  uint64_t version = 1;
  int64_t updates = 0;
  std::vector<v1::ShardState::WorkerSequence> applied;
};

// The part of a model that one shard takes.
struct ShardPart {
  size_t shard = 0;
  size_t num_shards = 1;
  std::vector<ElementRange> ranges;
};

// Thread-safe. Holds the bundle's files open.
class StoredBlocks {
 public:
  // `slots` has one entry per variable, or is empty: none has slots.
  //
  // Reads the index and the states of shards, and checks that every variable is there in its shape
  // and numeric. With a `part` the state of the shard with its number is read, the others only when
  // that one does not say all of it, and only the blocks of the part are kept. A slot that the
  // bundle lacks altogether (it is of another optimizer, or has none) starts with its initial
  // value; that is logged, once, with their number. INVALID_ARGUMENT: a variable is missing, or a
  // variable or slot has another shape or a type that is no number. Errors of ParseShardState and
  // BundleReader::Open; DATA_LOSS also: blocks make no sense, or a shard was cut at another
  // committed round than the job's state says of all.
  static absl::StatusOr<std::unique_ptr<StoredBlocks>> Open(
      const std::string& prefix, std::vector<VariableSpec> variables,
      std::vector<std::vector<SlotSpec>> slots, FileSystem* file_system = FileSystem::Real(),
      const ShardPart* part = nullptr);

  // Reads elements of the part: [first_element, first_element + values.size()) of
  // variables[variable] and of its slots; `slots` has one array of that size for each slot of the
  // variable. `state` gets version, updates and applied sequences of the stored block of just these
  // elements; where the elements were in other blocks, the highest version and number of updates of
  // those, and nothing as applied. Errors of BundleReader: DATA_LOSS names the file.
  absl::Status Read(size_t variable, int64_t first_element, absl::Span<float> values,
                    absl::Span<const absl::Span<float>> slots, StoredBlock* state) const;

  // The highest step of the shards whose states were read.
  int64_t shard_step() const { return shard_step_; }
  // The highest committed round of these shards, and its pushes (0: not known); -1: none.
  int64_t committed_round() const { return committed_round_; }
  uint32_t committed_contributions() const { return committed_contributions_; }
  const BundleReader& bundle() const { return *bundle_; }

 private:
  struct SlotArray {
    std::string name;
    float initial_value = 0;
    bool stored = false;
  };
  // A stored block: states_[state].blocks(block).
  struct Entry {
    int64_t first_element = 0;
    int64_t end = 0;
    size_t state = 0;
    int block = 0;
  };
  // A variable with its stored blocks.
  struct Variable {
    VariableSpec spec;
    std::vector<SlotArray> slots;
    // Disjoint blocks, ordered by first element.
    std::vector<Entry> blocks;
    // The part's elements; everything without a part.
    std::vector<ElementRange> wanted;
  };

  StoredBlocks(std::unique_ptr<BundleReader> bundle, std::vector<VariableSpec> variables,
               const std::vector<std::vector<SlotSpec>>& slots);

  absl::Status CheckArray(const std::string& name, const Shape& shape) const;
  absl::Status FindArrays();
  void Want(const ShardPart* part);
  absl::Status ReadJobState();
  absl::Status ReadShardStates(const ShardPart* part);
  absl::Status ReadShardState(const std::string& name);
  absl::Status CheckRound(const std::string& name, const v1::ShardState& state) const;
  absl::Status AddShardState(const std::string& name, v1::ShardState state);
  // DATA_LOSS: the block does not lie between `from` and the variable's end.
  absl::Status CheckBlock(const VariableSpec& variable, const v1::ShardState::Block& block,
                          int64_t from) const;
  absl::Status SortBlocks();
  // Whether the blocks, which are sorted, contain all that is wanted.
  bool Complete() const;
  StoredBlock StateOf(const Variable& variable, int64_t begin, int64_t end) const;

  const std::unique_ptr<BundleReader> bundle_;
  std::vector<Variable> variables_;
  // Those with blocks that are wanted.
  std::vector<v1::ShardState> states_;
  // The committed round of all shards (-1: none); absent where the bundle does not say.
  std::optional<int64_t> job_round_;
  int64_t shard_step_ = 0;
  int64_t committed_round_ = -1;
  uint32_t committed_contributions_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_STORED_BLOCKS_H_
