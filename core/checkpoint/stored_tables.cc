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

struct ShardNumber {
  uint32_t shard = 0;
  uint32_t shards = 0;
};

// I and N of a state's name, "_keelson/shard-I-of-N"; nothing: that is none.
std::optional<ShardNumber> ShardNumberOf(absl::string_view state_name) {
  if (!absl::ConsumePrefix(&state_name, kShardStatePrefix)) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(state_name, absl::MaxSplits("-of-", 1));
  ShardNumber number;
  if (!absl::SimpleAtoi(numbers.first, &number.shard) ||
      !absl::SimpleAtoi(numbers.second, &number.shards) || number.shard >= number.shards) {
    return std::nullopt;
  }
  return number;
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
         table.total_rows == from.total_rows() && table.total_erased == from.total_erased() &&
         table.spec.initializer == InitializerFromProto(from.initializer());
}

// Whether the chain that has come to `delta`, under the name `name`, may go on to `base`: snapshots
// that build on each other in a circle do not end.
absl::Status CheckEarlier(const BundleReader& delta, const v1::SnapshotBase& name,
                          const v1::SnapshotBase& base) {
  if (base.step() < name.step()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(delta.prefix(), ": ", ToString(name), " is a delta on ",
                                          ToString(base), ": expected one of an earlier step"));
}

}  // namespace

int64_t StoredTable::AllRows() const {
  int64_t rows = 0;
  for (const Partition& partition : partitions) rows += partition.all_rows;
  return rows;
}

absl::StatusOr<StoredTables> StoredTables::Open(const BundleReader* bundle,
                                                RowPartitionRun wanted) {
  ASSIGN_OR_RETURN(StoredTables stored, OpenOwn(bundle, wanted));
  // The links under way to the whole snapshot, and what they read.
  std::vector<StoredTables> links;
  std::vector<std::shared_ptr<const BundleReader>> bundles;
  links.push_back(std::move(stored));
  while (const v1::SnapshotBase* const base = links.back().base_name()) {
    if (links.size() > 1) {
      RETURN_IF_ERROR(
          CheckEarlier(*links.back().bundle_, *links[links.size() - 2].base_name(), *base));
    }
    RETURN_IF_ERROR(links.back().CheckChain(links.size(), *base));
    ASSIGN_OR_RETURN(std::shared_ptr<const BundleReader> opened,
                     OpenBase(*links.back().bundle_, *base));
    ASSIGN_OR_RETURN(StoredTables link, OpenOwn(opened.get(), wanted));
    bundles.push_back(std::move(opened));
    links.push_back(std::move(link));
  }
  for (; !bundles.empty(); bundles.pop_back()) {
    auto base = std::make_shared<const StoredTables>(std::move(links.back()));
    links.pop_back();
    links.back().base_ = std::move(base);
    links.back().base_bundle_ = std::move(bundles.back());
  }
  return std::move(links.front());
}

const v1::SnapshotBase* StoredTables::base_name() const {
  return !states_.empty() && states_[0].has_base() ? &states_[0].base() : nullptr;
}

absl::Status StoredTables::CheckChain(size_t links, const v1::SnapshotBase& base) const {
  if (links < kMostLinks) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(bundle_->prefix(), ": is a delta on ", ToString(base),
                                          ", the base of ", kMostLinks,
                                          " snapshots: expected a whole one"));
}

absl::StatusOr<StoredTables> StoredTables::OpenOwn(const BundleReader* bundle,
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
  uint32_t holding = 0;  // shards with rows; 0: all
  for (const auto& [name, tensor] : bundle_->contents().tensors) {
    const std::optional<ShardNumber> number = ShardNumberOf(name);
    if (!number.has_value()) continue;
    // The first shard, whose name is the first too, says how many hold rows.
    const auto partitions = [&] {
      return RowPartitionsOfShard(number->shard, holding == 0 ? number->shards : holding);
    };
    if (number->shard != 0 && !Overlap(partitions(), wanted)) continue;
    ASSIGN_OR_RETURN(const std::string bytes, bundle_->ReadString(name));
    ASSIGN_OR_RETURN(v1::ShardState state, ParseShardState(bytes, bundle_->prefix(), name));
    if (number->shard == 0) holding = state.table_shards();
    if (!Overlap(partitions(), wanted)) continue;
    RETURN_IF_ERROR(AddState(name, partitions(), std::move(state)));
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
  const bool same_base =
      states_.empty() || (states_[0].has_base() == state.has_base() &&
                          states_[0].base().step() == state.base().step() &&
                          states_[0].base().snapshot_id() == state.base().snapshot_id());
  if (!same_base) return Damaged(name, "builds on another snapshot than other shards");
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
    table->total_erased = from.total_erased();
  } else if (!SameTable(*table, from)) {
    return Damaged(name, absl::StrCat("table ", from.name(), ": is another one in other shards"));
  }
  int64_t first_row = from.first_row();
  int64_t first_erased = from.first_erased();
  for (int i = 0; i < static_cast<int>(state.num_row_partitions()); ++i) {
    StoredTable::Partition& partition =
        table->partitions[state.first_row_partition() + static_cast<uint32_t>(i)];
    partition = {first_row, from.rows(i), from.rows(i), 0, 0};
    first_row += from.rows(i);
    if (!state.has_base()) continue;
    partition.all_rows = from.all_rows(i);
    partition.first_erased = first_erased;
    partition.erased = from.erased(i);
    first_erased += from.erased(i);
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
                                     LastStepTensorName(name), UpdatesTensorName(name),
                                     ErasedTensorName(name)};
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
  RETURN_IF_ERROR(CheckOwnColumns(table, slots, missing));
  if (base_ == nullptr) return absl::OkStatus();
  const StoredTable* const in_base = base_->Find(table.spec.name);
  if (in_base == nullptr || in_base->spec.dim != table.spec.dim || in_base->seed != table.seed ||
      in_base->spec.initializer != table.spec.initializer) {
    return absl::DataLossError(absl::StrCat(
        bundle_->prefix(), ": table ", table.spec.name, ": expected the same table in its base ",
        base_->bundle_->prefix(), ", found ", in_base == nullptr ? "none" : "another"));
  }
  return base_->CheckColumns(*in_base, slots, missing);
}

absl::Status StoredTables::CheckOwnColumns(const StoredTable& table,
                                           absl::Span<const TableSlot> slots,
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
  if (base_ != nullptr) {
    const absl::Status status =
        CheckTensor(ErasedTensorName(name), BundleDtype::kInt64, Shape({table.total_erased}));
    if (!status.ok()) return absl::DataLossError(status.message());
  }
  for (const TableSlot& slot : slots) {
    const std::string tensor = SlotTensorName(name, slot.name);
    if (!bundle_->Contains(tensor)) {
      const bool listed = std::find(missing->begin(), missing->end(), tensor) != missing->end();
      if (!listed) missing->push_back(tensor);
      continue;
    }
    RETURN_IF_ERROR(CheckTensor(tensor, BundleDtype::kFloat32, Shape({rows, slot.floats})));
  }
  return absl::OkStatus();
}

absl::Status StoredTables::CheckIds(const StoredTable& table, uint32_t partition,
                                    absl::Span<const uint64_t> ids) const {
  return CheckIdsOf(KeysTensorName(table.spec.name), table, partition, ids, /*repeated=*/false);
}

absl::Status StoredTables::CheckErasedIds(const StoredTable& table, uint32_t partition,
                                          absl::Span<const uint64_t> ids) const {
  return CheckIdsOf(ErasedTensorName(table.spec.name), table, partition, ids, /*repeated=*/true);
}

absl::Status StoredTables::CheckIdsOf(absl::string_view tensor, const StoredTable& table,
                                      uint32_t partition, absl::Span<const uint64_t> ids,
                                      bool repeated) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t found = RowPartitionOf(MixId(ids[i], table.salt));
    const bool ascends = i == 0 || ids[i - 1] < ids[i] || (repeated && ids[i - 1] == ids[i]);
    if (found == partition && ascends) continue;
    return Damaged(tensor, absl::StrCat("expected ascending ids of partition ", partition,
                                        ", found ", ids[i], " of partition ", found,
                                        ascends ? "" : absl::StrCat(" behind ", ids[i - 1])));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> StoredTables::ReadIds(const std::string& tensor,
                                                            int64_t first, int64_t count) const {
  std::vector<uint64_t> ids(static_cast<size_t>(count));
  if (count == 0) return ids;
  RETURN_IF_ERROR(bundle_->ReadInt64s(
      tensor, first, absl::MakeSpan(reinterpret_cast<int64_t*>(ids.data()), ids.size())));
  return ids;
}

absl::StatusOr<std::vector<uint64_t>> StoredTables::ReadErased(const StoredTable& table,
                                                               uint32_t partition) const {
  const StoredTable::Partition& place = table.partitions[partition];
  ASSIGN_OR_RETURN(std::vector<uint64_t> ids,
                   ReadIds(ErasedTensorName(table.spec.name), place.first_erased, place.erased));
  RETURN_IF_ERROR(CheckErasedIds(table, partition, ids));
  return ids;
}

std::vector<StoredTables::Link> StoredTables::LinksOf(const StoredTable& table) const {
  std::vector<Link> links;
  for (const StoredTables* stored = this; stored != nullptr; stored = stored->base_.get()) {
    links.push_back({stored, stored->Find(table.spec.name)});
  }
  std::reverse(links.begin(), links.end());
  return links;
}

absl::StatusOr<std::vector<ChainedRow>> StoredTables::ChainRows(absl::Span<const Link> links,
                                                                uint32_t partition) const {
  std::vector<ChainedRow> rows;
  for (size_t l = 0; l < links.size(); ++l) {
    const auto [stored, table] = links[l];
    const StoredTable::Partition& place = table->partitions[partition];
    const std::string keys = KeysTensorName(table->spec.name);
    ASSIGN_OR_RETURN(const std::vector<uint64_t> ids,
                     stored->ReadIds(keys, place.first_row, place.rows));
    RETURN_IF_ERROR(stored->CheckIds(*table, partition, ids));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> erased, stored->ReadErased(*table, partition));
    AddLink(static_cast<uint32_t>(l), ids, erased, &rows);
    if (static_cast<int64_t>(rows.size()) == place.all_rows) continue;
    return stored->Damaged(
        keys, absl::StrCat("expected ", place.all_rows, " rows in partition ", partition,
                           l == 0 ? "" : " with those of its base", ", found ", rows.size()));
  }
  return rows;
}

absl::Status StoredTables::Read(const StoredTable& table, absl::Span<const TableSlot> slots,
                                uint32_t partition, TableColumns* columns) const {
  if (base_ == nullptr) return ReadOwn(table, slots, partition, columns);
  const std::vector<Link> links = LinksOf(table);
  ASSIGN_OR_RETURN(const std::vector<ChainedRow> rows, ChainRows(links, partition));
  columns->Resize(rows.size(), static_cast<size_t>(table.spec.dim), slots);
  TableColumns own;
  for (uint32_t l = 0; l < links.size(); ++l) {
    RETURN_IF_ERROR(links[l].stored->ReadOwn(*links[l].table, slots, partition, &own));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].link == l) columns->Copy(own, static_cast<size_t>(rows[i].row), i);
    }
  }
  return absl::OkStatus();
}

absl::Status StoredTables::ReadOwn(const StoredTable& table, absl::Span<const TableSlot> slots,
                                   uint32_t partition, TableColumns* columns) const {
  const std::string& name = table.spec.name;
  const int64_t first = table.partitions[partition].first_row;
  const int64_t rows = table.partitions[partition].rows;
  columns->Resize(static_cast<size_t>(rows), static_cast<size_t>(table.spec.dim), slots);
  if (rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(columns->ids, ReadIds(KeysTensorName(name), first, rows));
  RETURN_IF_ERROR(CheckIds(table, partition, columns->ids));
  if (table.spec.dim > 0) {
    RETURN_IF_ERROR(bundle_->ReadElements(ValuesTensorName(name), first * table.spec.dim,
                                          absl::MakeSpan(columns->values)));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string tensor = SlotTensorName(name, slots[i].name);
    const absl::Span<float> slot = absl::MakeSpan(columns->slots[i]);
    if (bundle_->Contains(tensor)) {
      RETURN_IF_ERROR(bundle_->ReadElements(tensor, first * slots[i].floats, slot));
    } else {
      std::fill(slot.begin(), slot.end(), slots[i].initial_value);
    }
  }
  const auto read_counters = [&](const std::string& tensor, std::vector<uint32_t>* out) {
    return bundle_->ReadInt32s(tensor, first,
                               absl::MakeSpan(reinterpret_cast<int32_t*>(out->data()), rows));
  };
  RETURN_IF_ERROR(read_counters(LastStepTensorName(name), &columns->last_steps));
  return read_counters(UpdatesTensorName(name), &columns->updates);
}

}  // namespace keelson
