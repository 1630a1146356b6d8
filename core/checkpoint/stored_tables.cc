#include "core/checkpoint/stored_tables.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/tensor/initializer_proto.h"

namespace keelson {
namespace {

// Of shard I of N, whose state's name is "_keelson/shard-I-of-N"; nothing: that is none.
std::optional<RowPartitionRun> PartitionsOf(absl::string_view state_name) {
  if (!absl::ConsumePrefix(&state_name, kShardStatePrefix)) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(state_name, absl::MaxSplits("-of-", 1));
  uint32_t shard = 0, shards = 0;
  if (!absl::SimpleAtoi(numbers.first, &shard) || !absl::SimpleAtoi(numbers.second, &shards) ||
      shard >= shards) {
    return std::nullopt;
  }
  return RowPartitionsOfShard(shard, shards);
}

bool Overlap(RowPartitionRun a, RowPartitionRun b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

std::string TextOf(const Initializer& initializer) {
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      return absl::StrCat("constant ", initializer.a);
    case Initializer::Kind::kUniform:
      return absl::StrCat("uniform from ", initializer.a, " to ", initializer.b);
    case Initializer::Kind::kNormal:
      return absl::StrCat("normal with mean ", initializer.a, " and standard deviation ",
                          initializer.b);
    case Initializer::Kind::kTruncatedNormal:
      return absl::StrCat("truncated normal with mean ", initializer.a, " and standard deviation ",
                          initializer.b);
  }
  return "";
}

bool SameTable(const StoredTable& table, const v1::ShardState::Table& from) {
  return table.spec.dim == from.dim() && table.seed == from.seed() &&
         table.total_rows == from.total_rows() &&
         table.spec.initializer == InitializerFromProto(from.initializer());
}

}  // namespace

absl::StatusOr<StoredTables> StoredTables::Open(const BundleReader* bundle,
                                                RowPartitionRun wanted) {
  StoredTables stored(bundle);
  RETURN_IF_ERROR(stored.ReadStates(wanted));
  for (std::vector<StoredTable>* const tables : {&stored.tables_, &stored.ghosts_}) {
    std::sort(tables->begin(), tables->end(),
              [](const StoredTable& a, const StoredTable& b) { return a.spec.name < b.spec.name; });
    for (const StoredTable& table : *tables) {
      RETURN_IF_ERROR(stored.CheckPartitions(table, wanted));
    }
  }
  return stored;
}

absl::Status StoredTables::ReadStates(RowPartitionRun wanted) {
  for (const auto& [name, tensor] : bundle_->contents().tensors) {
    const std::optional<RowPartitionRun> of_shard = PartitionsOf(name);
    if (!of_shard.has_value() || !Overlap(*of_shard, wanted)) continue;
    ASSIGN_OR_RETURN(const std::string bytes, bundle_->ReadString(name));
    ASSIGN_OR_RETURN(v1::ShardState state, ParseShardState(bytes, bundle_->prefix(), name));
    RETURN_IF_ERROR(AddState(name, *of_shard, std::move(state)));
  }
  return absl::OkStatus();
}

absl::Status StoredTables::AddState(const std::string& name, RowPartitionRun of_shard,
                                    v1::ShardState state) {
  if (state.tables().empty()) return absl::OkStatus();
  if (state.first_row_partition() != of_shard.first ||
      state.num_row_partitions() != of_shard.count) {
    return Damaged(name, absl::StrCat("expected ", of_shard.count, " partitions of rows from ",
                                      of_shard.first, " on, found ", state.num_row_partitions(),
                                      " from ", state.first_row_partition(), " on"));
  }
  steps_done_ = std::max(steps_done_, state.steps_done());
  for (const v1::ShardState::Table& table : state.tables()) {
    RETURN_IF_ERROR(AddTable(name, state, table, &tables_));
  }
  for (const v1::ShardState::Table& ghosts : state.ghosts()) {
    RETURN_IF_ERROR(AddTable(name, state, ghosts, &ghosts_));
  }
  states_.push_back(std::move(state));
  return absl::OkStatus();
}

absl::Status StoredTables::AddTable(const std::string& name, const v1::ShardState& state,
                                    const v1::ShardState::Table& from,
                                    std::vector<StoredTable>* tables) {
  auto table = std::find_if(tables->begin(), tables->end(), [&](const StoredTable& candidate) {
    return candidate.spec.name == from.name();
  });
  if (table == tables->end()) {
    table = tables->emplace(tables->end());
    table->spec = {from.name(), from.dim(), InitializerFromProto(from.initializer())};
    table->seed = from.seed();
    table->salt = TableSalt(TableOfRows(from.name()));
    table->total_rows = from.total_rows();
  } else if (!SameTable(*table, from)) {
    return Damaged(name, absl::StrCat("table ", from.name(), ": is another one in other shards"));
  }
  int64_t first_row = from.first_row();
  for (uint32_t i = 0; i < state.num_row_partitions(); ++i) {
    const int64_t rows = from.rows(static_cast<int>(i));
    table->partitions[state.first_row_partition() + i] = {first_row, rows};
    first_row += rows;
  }
  return absl::OkStatus();
}

absl::Status StoredTables::CheckPartitions(const StoredTable& table, RowPartitionRun wanted) const {
  int64_t end = wanted.first == 0 ? 0 : StoredTable::kUnknown;
  for (uint32_t p = wanted.first; p < wanted.first + wanted.count; ++p) {
    const StoredTable::Partition& partition = table.partitions[p];
    if (partition.first_row == StoredTable::kUnknown ||
        (end != StoredTable::kUnknown && partition.first_row != end)) {
      return Damaged(KeysTensorName(table.spec.name),
                     absl::StrCat("where the rows of partition ", p,
                                  " are is not said, or contradicts the other shards"));
    }
    end = partition.first_row + partition.rows;
  }
  if (wanted.first + wanted.count == kRowPartitions && end != table.total_rows) {
    return Damaged(KeysTensorName(table.spec.name),
                   absl::StrCat("expected ", table.total_rows, " rows, found ", end));
  }
  return absl::OkStatus();
}

const StoredTable* StoredTables::Find(absl::string_view name) const {
  for (const std::vector<StoredTable>* const tables : {&tables_, &ghosts_}) {
    for (const StoredTable& table : *tables) {
      if (table.spec.name == name) return &table;
    }
  }
  return nullptr;
}

std::vector<v1::ShardState::WorkerSequence> StoredTables::AppliedBy(uint32_t partition) const {
  for (const v1::ShardState& state : states_) {
    const uint32_t within = partition - state.first_row_partition();
    if (within >= state.num_row_partitions()) continue;
    return keelson::AppliedBy(state, state.blocks_size() + static_cast<int>(within));
  }
  return {};
}

absl::Status StoredTables::CheckSame(const StoredTable& table, const TableSpec& spec,
                                     uint64_t seed) const {
  const auto differs = [&](absl::string_view what, const auto& expected, const auto& found) {
    return absl::InvalidArgumentError(absl::StrCat(bundle_->prefix(), ": table ", spec.name, ": ",
                                                   what, ": expected ", expected, ", found ",
                                                   found));
  };
  if (table.spec.dim != spec.dim) return differs("dim", spec.dim, table.spec.dim);
  if (table.seed != seed) return differs("seed of the initial values", seed, table.seed);
  if (table.spec.initializer != spec.initializer) {
    return differs("initial values", TextOf(spec.initializer), TextOf(table.spec.initializer));
  }
  return absl::OkStatus();
}

std::vector<TableSlot> StoredTables::SlotsOf(const StoredTable& table) const {
  const std::string& name = table.spec.name;
  std::vector<std::string> others = {KeysTensorName(name), ValuesTensorName(name),
                                     LastStepTensorName(name), UpdatesTensorName(name)};
  for (const v1::ShardState& state : states_) {
    others.insert(others.end(), state.variables().begin(), state.variables().end());
  }
  std::vector<TableSlot> slots;
  const auto& tensors = bundle_->contents().tensors;
  const std::string begin = SlotTensorName(name, "");
  for (auto it = tensors.lower_bound(begin); it != tensors.end(); ++it) {
    absl::string_view slot = it->first;
    if (!absl::ConsumePrefix(&slot, begin)) break;
    const Shape& shape = it->second.shape;
    const bool fits = shape.rank() == 2 && shape.rows() == table.total_rows &&
                      (shape.dim(1) == 1 || shape.dim(1) == table.spec.dim);
    if (!fits || absl::StrContains(slot, '/') ||
        std::find(others.begin(), others.end(), it->first) != others.end()) {
      continue;
    }
    slots.push_back({std::string(slot), shape.dim(1), 0});
  }
  return slots;
}

absl::Status StoredTables::Damaged(absl::string_view tensor, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(bundle_->prefix(), ": tensor '", tensor, "': ", what));
}

absl::Status StoredTables::CheckTensor(const std::string& tensor, BundleDtype dtype,
                                       const Shape& shape) const {
  ASSIGN_OR_RETURN(const TensorInfo info, bundle_->Info(tensor));
  if (info.shape == shape && info.dtype == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      bundle_->prefix(), ": tensor '", tensor, "': expected ", DtypeName(dtype), " of shape ",
      shape.ToString(), ", found ", DtypeName(info.dtype), " of shape ", info.shape.ToString()));
}

absl::Status StoredTables::CheckColumns(const StoredTable& table, absl::Span<const TableSlot> slots,
                                        std::vector<std::string>* missing) const {
  const std::string& name = table.spec.name;
  const int64_t rows = table.total_rows;
  const std::tuple<std::string, BundleDtype, Shape> columns[] = {
      {KeysTensorName(name), BundleDtype::kInt64, Shape({rows})},
      {ValuesTensorName(name), BundleDtype::kFloat32, Shape({rows, table.spec.dim})},
      {LastStepTensorName(name), BundleDtype::kInt32, Shape({rows})},
      {UpdatesTensorName(name), BundleDtype::kInt32, Shape({rows})}};
  for (const auto& [tensor, dtype, shape] : columns) {
    if (shape.rank() == 2 && table.spec.dim == 0) continue;
    const absl::Status status = CheckTensor(tensor, dtype, shape);
    if (!status.ok()) return absl::DataLossError(status.message());
  }
  for (const TableSlot& slot : slots) {
    const std::string tensor = SlotTensorName(name, slot.name);
    if (!bundle_->Contains(tensor)) {
      missing->push_back(tensor);
      continue;
    }
    RETURN_IF_ERROR(CheckTensor(tensor, BundleDtype::kFloat32, Shape({rows, slot.floats})));
  }
  return absl::OkStatus();
}

absl::Status StoredTables::CheckIds(const StoredTable& table, uint32_t partition,
                                    absl::Span<const uint64_t> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t found = RowPartitionOf(MixId(ids[i], table.salt));
    const bool ascends = i == 0 || ids[i - 1] < ids[i];
    if (found == partition && ascends) continue;
    return Damaged(
        KeysTensorName(table.spec.name),
        absl::StrCat("expected ascending ids of partition ", partition, ", found ", ids[i],
                     " of partition ", found, ascends ? "" : absl::StrCat(" behind ", ids[i - 1])));
  }
  return absl::OkStatus();
}

absl::Status StoredTables::Read(const StoredTable& table, absl::Span<const TableSlot> slots,
                                uint32_t partition, TableColumns* columns) const {
  const std::string& name = table.spec.name;
  const int64_t first = table.partitions[partition].first_row;
  const int64_t rows = table.partitions[partition].rows;
  columns->Clear(slots.size());
  if (rows == 0) return absl::OkStatus();
  columns->ids.resize(rows);
  RETURN_IF_ERROR(
      bundle_->ReadInt64s(KeysTensorName(name), first,
                          absl::MakeSpan(reinterpret_cast<int64_t*>(columns->ids.data()), rows)));
  RETURN_IF_ERROR(CheckIds(table, partition, columns->ids));
  columns->values.resize(rows * table.spec.dim);
  if (table.spec.dim > 0) {
    RETURN_IF_ERROR(bundle_->ReadElements(ValuesTensorName(name), first * table.spec.dim,
                                          absl::MakeSpan(columns->values)));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string tensor = SlotTensorName(name, slots[i].name);
    columns->slots[i].assign(rows * slots[i].floats, slots[i].initial_value);
    if (!bundle_->Contains(tensor)) continue;
    RETURN_IF_ERROR(
        bundle_->ReadElements(tensor, first * slots[i].floats, absl::MakeSpan(columns->slots[i])));
  }
  const auto read_counters = [&](const std::string& tensor, std::vector<uint32_t>* out) {
    out->resize(rows);
    return bundle_->ReadInt32s(tensor, first,
                               absl::MakeSpan(reinterpret_cast<int32_t*>(out->data()), rows));
  };
  RETURN_IF_ERROR(read_counters(LastStepTensorName(name), &columns->last_steps));
  return read_counters(UpdatesTensorName(name), &columns->updates);
}

}  // namespace keelson
