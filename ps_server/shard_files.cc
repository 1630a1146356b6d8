#include "ps_server/shard_files.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr absl::string_view kShardStatePrefix = "_keelson/shard-";

std::string SlotName(const VariableSpec& variable, const SlotSpec& slot) {
  return absl::StrCat(variable.name, "/", slot.name);
}

// One array (the values, or a slot) of a partition, block after block.
template <typename SelectArray>
absl::Status WriteArray(const Placement& placement, int p, const std::string& name,
                        const std::vector<BlockState>& blocks, SelectArray select,
                        BundleDataWriter* writer) {
  const Partition& partition = placement.partition(p);
  RETURN_IF_ERROR(writer->BeginSlice(name, placement.VariableOf(p).shape, partition.row_begin,
                                     partition.row_end));
  for (const BlockState& block : blocks) {
    RETURN_IF_ERROR(writer->AppendValues(select(*block.content).span()));
  }
  return writer->EndSlice();
}

absl::Status WritePartition(const BlockStore& store, int p, const std::vector<BlockState>& blocks,
                            BundleDataWriter* writer) {
  const VariableSpec& variable = store.placement().VariableOf(p);
  RETURN_IF_ERROR(WriteArray(
      store.placement(), p, variable.name, blocks,
      [](const BlockContent& content) -> const AlignedBuffer& { return content.values; }, writer));
  const std::vector<SlotSpec>& slots = store.optimizer().slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    RETURN_IF_ERROR(WriteArray(
        store.placement(), p, SlotName(variable, slots[i]), blocks,
        [i](const BlockContent& content) -> const AlignedBuffer& { return content.slots[i]; },
        writer));
  }
  return absl::OkStatus();
}

v1::ShardState StateOf(const BlockStore& store, const ShardCut& cut) {
  const Placement& placement = store.placement();
  v1::ShardState state;
  state.set_shard_step(cut.shard_step);
  for (const VariableSpec& variable : placement.variables()) state.add_variables(variable.name);
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    const int p = store.partitions()[i];
    for (size_t b = 0; b < cut.partitions[i].size(); ++b) {
      const BlockState& from = cut.partitions[i][b];
      v1::ShardState::Block* block = state.add_blocks();
      block->set_variable(static_cast<uint32_t>(placement.partition(p).variable));
      block->set_first_element(placement.PartitionFirstElement(p) +
                               static_cast<int64_t>(b) * placement.block_elements());
      block->set_num_elements(from.content->values.size());
      block->set_version(from.content->version);
      block->set_updates(from.content->updates);
      for (const AppliedSequence& applied : from.applied) {
        v1::ShardState::WorkerSequence* sequence = block->add_applied();
        sequence->set_incarnation(applied.incarnation);
        sequence->set_sequence(applied.sequence);
      }
    }
  }
  return state;
}

int64_t MaxUpdates(const ShardCut& cut) {
  int64_t updates = 0;
  for (const auto& blocks : cut.partitions) {
    for (const BlockState& block : blocks) updates = std::max(updates, block.content->updates);
  }
  return updates;
}

// What the shards of a bundle recorded of their blocks, by variable name.
class StoredBlocks {
 public:
  static absl::StatusOr<StoredBlocks> Read(const BundleReader& bundle) {
    StoredBlocks stored;
    for (const TensorInfo& tensor : bundle.List()) {
      if (!absl::StartsWith(tensor.name, kShardStatePrefix)) continue;
      ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(tensor.name));
      v1::ShardState state;
      if (!state.ParseFromString(bytes)) {
        return absl::DataLossError(
            absl::StrCat(bundle.prefix(), ": ", tensor.name, ": not a ShardState"));
      }
      RETURN_IF_ERROR(stored.Add(bundle.prefix(), tensor.name, state));
    }
    return stored;
  }

  int64_t shard_step() const { return shard_step_; }

  // Completes version, updates and applied sequences of a restored block.
  void Adopt(const std::string& variable, const BlockStore::BlockPosition& position,
             BlockState* state, BlockContent* content) const {
    const auto found = blocks_.find(variable);
    if (found == blocks_.end()) return;
    for (const v1::ShardState::Block& block : found->second) {
      const int64_t end = block.first_element() + block.num_elements();
      const bool overlaps =
          block.first_element() < position.first_element + position.num_elements &&
          position.first_element < end;
      if (!overlaps) continue;
      content->updates = std::max(content->updates, block.updates());
      content->version = std::max(content->version, block.version());
      if (block.first_element() == position.first_element &&
          block.num_elements() == position.num_elements) {
        for (const auto& applied : block.applied()) {
          state->applied.push_back({applied.incarnation(), applied.sequence()});
        }
      }
    }
  }

 private:
  absl::Status Add(const std::string& prefix, const std::string& name,
                   const v1::ShardState& state) {
    shard_step_ = std::max(shard_step_, state.shard_step());
    for (const v1::ShardState::Block& block : state.blocks()) {
      if (block.variable() >= static_cast<uint32_t>(state.variables_size())) {
        return absl::DataLossError(absl::StrCat(prefix, ": ", name, ": variable ", block.variable(),
                                                ", expected below ", state.variables_size()));
      }
      blocks_[state.variables(static_cast<int>(block.variable()))].push_back(block);
    }
    return absl::OkStatus();
  }

  int64_t shard_step_ = 0;
  std::map<std::string, std::vector<v1::ShardState::Block>> blocks_;
};

// Elements [first, first + out.size()) of a tensor; blocks do not begin and end with rows.
absl::Status ReadElements(const BundleReader& bundle, const std::string& name, const Shape& shape,
                          int64_t first, absl::Span<float> out) {
  const int64_t row_elements = shape.row_elements();
  const int64_t end = first + static_cast<int64_t>(out.size());
  const int64_t row_begin = first / row_elements;
  const int64_t row_end = (end + row_elements - 1) / row_elements;
  std::vector<float> rows(static_cast<size_t>((row_end - row_begin) * row_elements));
  RETURN_IF_ERROR(bundle.ReadRows(name, row_begin, row_end, absl::MakeSpan(rows)));
  std::copy_n(rows.begin() + (first - row_begin * row_elements), out.size(), out.begin());
  return absl::OkStatus();
}

absl::Status CheckStoredShapes(const BundleReader& bundle,
                               const std::vector<VariableSpec>& variables) {
  std::map<std::string, Shape> stored;
  for (const TensorInfo& tensor : bundle.List()) stored.emplace(tensor.name, tensor.shape);
  for (const VariableSpec& variable : variables) {
    const auto found = stored.find(variable.name);
    if (found == stored.end()) {
      return absl::InvalidArgumentError(absl::StrCat(bundle.prefix(), ": has no variable ",
                                                     variable.name, "; it is of another model"));
    }
    if (found->second != variable.shape) {
      return absl::InvalidArgumentError(absl::StrCat(bundle.prefix(), ": ", variable.name,
                                                     ": expected shape ", variable.shape.ToString(),
                                                     ", found ", found->second.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShardStateName(int shard, int num_shards) {
  return absl::StrCat(kShardStatePrefix, shard, "-of-", num_shards);
}

absl::StatusOr<WrittenShard> WriteShard(const BlockStore& store, const ShardCut& cut,
                                        const std::string& data_path, int data_shard) {
  ASSIGN_OR_RETURN(std::unique_ptr<BundleDataWriter> writer,
                   BundleDataWriter::Create(data_path, data_shard));
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    RETURN_IF_ERROR(WritePartition(store, store.partitions()[i], cut.partitions[i], writer.get()));
  }
  RETURN_IF_ERROR(writer->AddString(ShardStateName(store.shard(), store.placement().num_shards()),
                                    StateOf(store, cut).SerializeAsString()));
  if (store.shard() == 0) {
    for (const auto& [name, value] : store.optimizer().ScalarState(MaxUpdates(cut))) {
      RETURN_IF_ERROR(writer->AddFloatScalar(name, value));
    }
  }
  WrittenShard written;
  written.bytes_written = writer->bytes_written();
  ASSIGN_OR_RETURN(written.entries, writer->Finish());
  return written;
}

absl::StatusOr<std::unique_ptr<BlockStore>> InitializeShard(BlockStore::Options options,
                                                            uint64_t seed) {
  const std::vector<VariableSpec> variables = options.placement.variables();
  return BlockStore::Create(
      std::move(options), 0, [&](const BlockStore::BlockPosition& position, BlockState* state) {
        FillInitialValues(variables[static_cast<size_t>(position.variable)], seed,
                          position.first_element, state->content.Mutable()->values.span());
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<BlockStore>> RestoreShard(BlockStore::Options options,
                                                         const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  ASSIGN_OR_RETURN(const StoredBlocks stored, StoredBlocks::Read(*bundle));
  const std::vector<VariableSpec> variables = options.placement.variables();
  const std::vector<SlotSpec> slots = options.optimizer->slots();
  RETURN_IF_ERROR(CheckStoredShapes(*bundle, variables));
  return BlockStore::Create(
      std::move(options), stored.shard_step(),
      [&](const BlockStore::BlockPosition& position, BlockState* state) -> absl::Status {
        const VariableSpec& variable = variables[static_cast<size_t>(position.variable)];
        BlockContent* content = state->content.Mutable();
        RETURN_IF_ERROR(ReadElements(*bundle, variable.name, variable.shape, position.first_element,
                                     content->values.span()));
        for (size_t i = 0; i < slots.size(); ++i) {
          RETURN_IF_ERROR(ReadElements(*bundle, SlotName(variable, slots[i]), variable.shape,
                                       position.first_element, content->slots[i].span()));
        }
        stored.Adopt(variable.name, position, state, content);
        return absl::OkStatus();
      });
}

}  // namespace keelson
