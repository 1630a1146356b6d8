#include "ps_server/snapshots/shard_files.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_blocks.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

// Writes one array (the values, or a slot) of a partition, block after block.
template <typename SelectArray>
absl::Status WriteArray(const Placement& placement, size_t p, const std::string& name,
                        const std::vector<BlockContentRef>& blocks, SelectArray select,
                        BundleDataWriter* writer, absl::FunctionRef<absl::Status()> go_on) {
  const Partition& partition = placement.partition(p);
  RETURN_IF_ERROR(writer->BeginSlice(name, placement.VariableOf(p).shape, partition.row_begin,
                                     partition.row_end));
  for (const BlockContentRef& block : blocks) {
    RETURN_IF_ERROR(go_on());
    RETURN_IF_ERROR(writer->AppendValues(select(*block).span()));
  }
  return writer->EndSlice();
}

absl::Status WritePartition(const ShardStore& store, size_t p,
                            const std::vector<BlockContentRef>& blocks, BundleDataWriter* writer,
                            absl::FunctionRef<absl::Status()> go_on) {
  const VariableSpec& variable = store.placement().VariableOf(p);
  RETURN_IF_ERROR(WriteArray(
      store.placement(), p, variable.name, blocks,
      [](const BlockContent& content) -> const AlignedBuffer& { return content.values; }, writer,
      go_on));
  const std::vector<SlotSpec>& slots = store.OptimizerOf(p).slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    RETURN_IF_ERROR(WriteArray(
        store.placement(), p, SlotTensorName(variable.name, slots[i].name), blocks,
        [i](const BlockContent& content) -> const AlignedBuffer& { return content.slots[i]; },
        writer, go_on));
  }
  return absl::OkStatus();
}

void AddApplied(const SequenceTable& table, v1::ShardState* state) {
  for (const auto& [incarnation, runs] : table) {
    v1::ShardState::Applied* const applied = state->add_applied();
    applied->set_incarnation(incarnation);
    for (const SequenceRun& run : runs) {
      v1::ShardState::Applied::Run* const out = applied->add_runs();
      out->set_begin(run.begin);
      out->set_end(run.end);
      out->set_sequence(run.sequence);
    }
  }
}

// The oldest that says what there is to say.
uint32_t FormatOf(const Placement& placement, const TableStore* tables, const TablePlaces& places) {
  if (tables == nullptr) return kTablelessShardStateFormat;
  if (placement.table_shards() < placement.num_shards()) return kShardStateFormat;
  const bool ghosts = tables->tables_and_ghosts().size() > tables->tables().size();
  if (ghosts) return kGhostShardStateFormat;
  return places.base.has_value() ? kDeltaShardStateFormat : kGhostlessShardStateFormat;
}

// Blocks are in the order in which the shard counts its units.
v1::ShardState StateOf(const ShardStore& store, const ShardCut& cut, const TablePlaces& places) {
  const Placement& placement = store.placement();
  v1::ShardState state;
  state.set_format(FormatOf(placement, store.tables(), places));
  state.set_shard_step(cut.shard_step);
  if (cut.committed.round >= 0) {
    state.set_committed_round(cut.committed.round);
    state.set_committed_contributions(cut.committed.contributions);
  }
  for (const VariableSpec& variable : placement.variables()) state.add_variables(variable.name);
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    const size_t p = store.partitions()[i];
    for (size_t b = 0; b < cut.partitions[i].size(); ++b) {
      const BlockContent& from = *cut.partitions[i][b];
      v1::ShardState::Block* block = state.add_blocks();
      block->set_variable(static_cast<uint32_t>(placement.partition(p).variable));
      block->set_first_element(placement.PartitionFirstElement(p) +
                               static_cast<int64_t>(b) * placement.block_elements());
      block->set_num_elements(from.values.size());
      block->set_version(from.version);
      block->set_updates(from.updates);
    }
  }
  if (cut.tables != nullptr) {
    AddTables(*store.tables(), *cut.tables, places, &state);
    const size_t holding = placement.table_shards();
    if (holding < placement.num_shards()) state.set_table_shards(static_cast<uint32_t>(holding));
  }
  AddApplied(cut.applied, &state);
  return state;
}

int64_t MaxUpdates(const ShardCut& cut) {
  int64_t updates = 0;
  for (const auto& blocks : cut.partitions) {
    for (const BlockContentRef& block : blocks) updates = std::max(updates, block->updates);
  }
  return updates;
}

}  // namespace

absl::StatusOr<WrittenShard> WriteShard(const ShardStore& store, const ShardCut& cut,
                                        const TablePlaces& places, BundleDataWriter* writer,
                                        absl::FunctionRef<absl::Status()> go_on) {
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    RETURN_IF_ERROR(WritePartition(store, store.partitions()[i], cut.partitions[i], writer, go_on));
  }
  if (cut.tables != nullptr) {
    RETURN_IF_ERROR(WriteTables(*store.tables(), *cut.tables, places, writer, go_on));
  }
  const std::string name = ShardStateName(store.shard(), store.placement().num_shards());
  ASSIGN_OR_RETURN(const std::string state, SerializeState(StateOf(store, cut, places), name));
  RETURN_IF_ERROR(writer->AddString(name, state));
  if (store.shard() == 0) {
    for (const auto& [name, value] : store.optimizers().ScalarState(MaxUpdates(cut))) {
      RETURN_IF_ERROR(writer->AddFloatScalar(name, value));
    }
  }
  WrittenShard written;
  written.bytes_written = writer->bytes_written();
  RETURN_IF_ERROR(go_on());
  ASSIGN_OR_RETURN(written.entries, writer->Finish());
  return written;
}

absl::StatusOr<std::unique_ptr<ShardStore>> InitializeShard(ShardStore::Options options,
                                                            uint64_t seed) {
  const std::vector<VariableSpec> variables = options.placement.variables();
  return ShardStore::Create(
      std::move(options), {}, [&](const ShardStore::BlockPosition& position, BlockState* state) {
        FillInitialValues(variables[position.variable], seed, position.first_element,
                          state->content.Mutable()->values.span());
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<ShardStore>> RestoreShard(ShardStore::Options options,
                                                         const std::string& prefix,
                                                         FileSystem* file_system, int threads) {
  const ShardPart part = {options.shard, options.placement.num_shards(),
                          options.placement.RangesOf(options.shard)};
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredBlocks> stored,
                   StoredBlocks::Open(prefix, options.placement.variables(),
                                      options.optimizers.Slots(), file_system, &part));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ShardStore> store,
      ShardStore::Create(
          std::move(options),
          {stored->shard_step(), {stored->committed_round(), stored->committed_contributions()}},
          [&](const ShardStore::BlockPosition& position, BlockState* state) -> absl::Status {
            BlockContent* content = state->content.Mutable();
            std::vector<absl::Span<float>> slots;
            for (AlignedBuffer& slot : content->slots) slots.push_back(slot.span());
            StoredBlock block;
            RETURN_IF_ERROR(stored->Read(position.variable, position.first_element,
                                         content->values.span(), slots, &block));
            content->version = block.version;
            content->updates = block.updates;
            for (const v1::ShardState::WorkerSequence& applied : block.applied) {
              state->applied.push_back({applied.incarnation(), applied.sequence()});
            }
            return absl::OkStatus();
          }));
  if (store->tables() != nullptr) {
    RETURN_IF_ERROR(RestoreTables(stored->bundle(), threads, store->tables()));
  }
  return store;
}

}  // namespace keelson
