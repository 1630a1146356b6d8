#include "chief/servers/shard_rows.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/optim/table_optimizers.h"

namespace keelson {
namespace {

constexpr size_t kRowsChunkBytes = 4 << 20;

template <typename T>
void Append(const std::vector<T>& from, size_t begin, size_t count, std::string* to) {
  to->append(reinterpret_cast<const char*>(from.data() + begin), count * sizeof(T));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardRows>> ShardRows::Open(
    const v1::InitializeShardRequest& request, const Placement& placement,
    const BundleReader* bundle) {
  const RowPartitionRun run = placement.RowPartitionsOf(request.shard());
  if (placement.tables().empty() || run.count == 0) return nullptr;
  ASSIGN_OR_RETURN(const TableOptimizers optimizers,
                   TableOptimizers::Create({request.optimizer(), request.stale_gradients(),
                                            request.learning_rate().base()},
                                           placement.tables()));
  ASSIGN_OR_RETURN(StoredTables stored, StoredTables::Open(bundle, run));
  std::unique_ptr<ShardRows> rows(new ShardRows(std::move(stored), run));
  std::vector<std::string> missing;
  const auto add = [&](const TableSpec& spec, std::vector<TableSlot> slots) -> absl::Status {
    Table& table = rows->tables_.emplace_back();
    table.slots = std::move(slots);
    table.stored = rows->stored_.Find(spec.name);
    if (table.stored == nullptr && spec.dim == 0) return absl::OkStatus();
    if (table.stored == nullptr) {
      LogWarning(bundle->prefix(), ": has no table ", spec.name, "; it starts without rows");
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(rows->stored_.CheckSame(*table.stored, spec, request.seed()));
    return rows->stored_.CheckColumns(*table.stored, table.slots, &missing);
  };
  for (size_t t = 0; t < placement.tables().size(); ++t) {
    RETURN_IF_ERROR(add(placement.tables()[t], TableSlotsOf(optimizers.Of(t).slots())));
  }
  for (const TableSpec& spec : placement.tables()) {
    if (spec.counts_ids()) RETURN_IF_ERROR(add(GhostsOf(spec), {}));
  }
  if (!missing.empty()) {
    LogWarning(bundle->prefix(), ": lacks ", missing.size(),
               " of the slots of tables' rows (first: ", missing.front(),
               "); they start with their initial values");
  }
  return rows;
}

void ShardRows::Begin(v1::InitializeChunk* first) const {
  first->set_steps_done(stored_.steps_done());
  std::map<uint64_t, v1::ShardState::Applied> by_incarnation;
  for (uint32_t p = run_.first; p < run_.first + run_.count; ++p) {
    for (const v1::ShardState::WorkerSequence& push : stored_.AppliedBy(p)) {
      v1::ShardState::Applied& applied = by_incarnation[push.incarnation()];
      applied.set_incarnation(push.incarnation());
      auto& runs = *applied.mutable_runs();
      const bool goes_on = !runs.empty() && runs.rbegin()->end() == p &&
                           runs.rbegin()->sequence() == push.sequence();
      if (!goes_on) {
        applied.add_runs()->set_begin(p);
        runs.rbegin()->set_sequence(push.sequence());
      }
      runs.rbegin()->set_end(p + 1);
    }
  }
  for (auto& [incarnation, applied] : by_incarnation) {
    *first->add_applied_by_partitions() = std::move(applied);
  }
}

absl::StatusOr<bool> ShardRows::Advance() {
  while (taken_ == columns_.ids.size()) {
    if (partition_ == run_.first + run_.count) return false;
    const Table& table = tables_[table_];
    columns_.Clear(table.slots.size());
    taken_ = 0;
    if (table.stored != nullptr) {
      RETURN_IF_ERROR(stored_.Read(*table.stored, table.slots, partition_, &columns_));
    }
    read_partition_ = partition_;
    read_table_ = table_;
    if (++table_ == tables_.size()) {
      table_ = 0;
      ++partition_;
    }
  }
  return true;
}

size_t ShardRows::Take(size_t bytes, v1::InitializeChunk::Rows* rows) {
  const Table& table = tables_[read_table_];
  const auto dim = static_cast<size_t>(table.stored->spec.dim);
  size_t floats = dim;
  for (const TableSlot& slot : table.slots) floats += static_cast<size_t>(slot.floats);
  const size_t row_bytes = sizeof(uint64_t) + 2 * sizeof(uint32_t) + floats * sizeof(float);
  const size_t count =
      std::min(columns_.ids.size() - taken_, std::max<size_t>(1, bytes / row_bytes));
  rows->set_table(static_cast<uint32_t>(read_table_));
  rows->set_partition(read_partition_);
  Append(columns_.ids, taken_, count, rows->mutable_keys());
  Append(columns_.last_steps, taken_, count, rows->mutable_last_steps());
  Append(columns_.updates, taken_, count, rows->mutable_updates());
  rows->mutable_elements()->reserve(count * floats * sizeof(float));
  for (size_t i = taken_; i < taken_ + count; ++i) {
    Append(columns_.values, i * dim, dim, rows->mutable_elements());
    for (size_t s = 0; s < table.slots.size(); ++s) {
      const auto width = static_cast<size_t>(table.slots[s].floats);
      Append(columns_.slots[s], i * width, width, rows->mutable_elements());
    }
  }
  taken_ += count;
  return count * row_bytes;
}

absl::StatusOr<std::optional<v1::InitializeChunk>> ShardRows::Next() {
  v1::InitializeChunk chunk;
  for (size_t bytes = 0; bytes < kRowsChunkBytes;) {
    ASSIGN_OR_RETURN(const bool more, Advance());
    if (!more) break;
    bytes += Take(kRowsChunkBytes - bytes, chunk.add_rows());
  }
  if (chunk.rows().empty()) return std::nullopt;
  return chunk;
}

}  // namespace keelson
