#include "ps_server/units/table_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/table/row_id.h"

namespace keelson {

TableCut::~TableCut() {
  for (const auto& partition : store_->partitions_) partition->EndCut(generation_);
}

const TableCutSize& TableCut::SizeOf(uint32_t partition, size_t table) const {
  return sizes_[partition - store_->partitions().first][table];
}

int64_t TableCut::Rows(uint32_t partition, size_t table, Part part) const {
  const TableCutSize& size = SizeOf(partition, table);
  return part == Part::kAll ? size.rows : size.changes->rows;
}

int64_t TableCut::Rows(size_t table, Part part) const {
  const RowPartitionRun run = store_->partitions();
  int64_t rows = 0;
  for (uint32_t p = run.first; p < run.first + run.count; ++p) rows += Rows(p, table, part);
  return rows;
}

int64_t TableCut::NumErased(uint32_t partition, size_t table) const {
  return SizeOf(partition, table).changes->num_erased();
}

int64_t TableCut::NumErased(size_t table) const {
  const RowPartitionRun run = store_->partitions();
  int64_t ids = 0;
  for (uint32_t p = run.first; p < run.first + run.count; ++p) ids += NumErased(p, table);
  return ids;
}

std::vector<uint64_t> TableCut::Erased(uint32_t partition, size_t table) const {
  std::vector<uint64_t> ids;
  for (const auto& set : SizeOf(partition, table).changes->erased) {
    ids.insert(ids.end(), set->begin(), set->end());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::Status TableCut::Read(uint32_t partition, size_t table, TablePartition::RowVisitor visit,
                            absl::FunctionRef<absl::Status()> go_on, Part part) const {
  return store_->Partition(partition)->ReadCut(generation_, table, part == Part::kAll ? 0 : since_,
                                               visit, go_on);
}

void TableCut::EndPartition(uint32_t partition) const {
  store_->Partition(partition)->EndCut(generation_);
}

absl::StatusOr<std::unique_ptr<TableStore>> TableStore::Create(
    Options options, const TableOptimizers* optimizers, const LearningRateSchedule* learning_rate,
    AppliedSequences* sequences) {
  std::unique_ptr<TableStore> store(new TableStore(std::move(options), learning_rate));
  RETURN_IF_ERROR(store->AddTables(*optimizers));
  const Options& made = store->options_;
  for (uint32_t i = 0; i < made.partitions.count; ++i) {
    store->partitions_.push_back(
        std::make_unique<TablePartition>(store->tables_, made.first_unit + i, sequences));
  }
  return store;
}

absl::Status TableStore::AddTables(const TableOptimizers& optimizers) {
  const auto initial = [&](const TableSpec& spec) {
    return InitialRows(spec.initializer, seed(), TableSalt(spec.name));
  };
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    const TableSpec& spec = options_.tables[t];
    const RowOptimizer& optimizer = optimizers.Of(t);
    std::vector<RowSlot> slots;
    for (const RowSlotSpec& slot : optimizer.slots()) {
      slots.push_back({static_cast<int64_t>(slot.floats), slot.initial_value});
    }
    ASSIGN_OR_RETURN(RowLayout layout, RowLayout::Create(spec.dim, std::move(slots)));
    tables_.push_back(
        {spec, std::move(layout), initial(spec), &optimizer, std::make_shared<HotIds>()});
    wire_tables_.emplace_back(spec);
  }
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    if (!options_.tables[t].counts_ids()) continue;
    const TableSpec ghosts = GhostsOf(options_.tables[t]);
    tables_[t].ghosts = tables_.size();
    tables_.push_back({ghosts, RowLayout::HeadersOnly(), initial(ghosts)});
  }
  for (ServedTable& table : tables_) {
    table.rows.layout = &table.layout;
    table.rows.initial = &table.initial;
    table.rows.memory = &memory_;
    table.rows.salt = TableSalt(TableOfRows(table.spec.name));
  }
  return absl::OkStatus();
}

RowTime TableStore::UpdateAt(int64_t step, float learning_rate) {
  int64_t done = steps_done();
  while (done <= step && !steps_done_.compare_exchange_weak(done, step + 1)) {
  }
  return {step, learning_rate, learning_rate_.At(step), steps_done() - 1};
}

RowTime TableStore::ReadNow() const {
  const int64_t done = steps_done();
  const float rate = learning_rate_.At(std::max<int64_t>(0, done - 1));
  return {done, rate, rate, done};
}

absl::Status TableStore::CheckContributions(const RoundId& round, uint32_t contributions) const {
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const uint32_t found = partitions_[i]->Contributions(round);
    if (found == contributions) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(round.ToString(), ": partition ", options_.partitions.first + i,
                     " of the tables: expected ", contributions, " contributions, found ", found));
  }
  return absl::OkStatus();
}

void TableStore::CommitRound(const RoundId& round, float learning_rate, ThreadPool* pool) {
  const RowTime time = UpdateAt(round.round, learning_rate);
  pool->RunAll(partitions_.size(), [&](size_t i) { partitions_[i]->CommitRound(time); });
}

std::shared_ptr<const TableCut> TableStore::Cut(const CutChanges& changes) {
  const uint64_t generation = ++generation_;
  std::shared_ptr<TableCut> cut(new TableCut(this, generation, changes.since));
  cut->steps_done_ = steps_done();
  cut->has_changes_ = changes.since != 0;
  for (const auto& partition : partitions_) {
    cut->sizes_.push_back(partition->StartCut(generation, changes));
    for (const TableCutSize& size : cut->sizes_.back()) {
      cut->has_changes_ = cut->has_changes_ && size.changes.has_value();
    }
  }
  return cut;
}

std::vector<HotIds::Count> TableStore::Hottest(size_t table, size_t most) const {
  std::vector<HotIds::Count> hottest = tables_[table].hot->Top(most);
  for (HotIds::Count& hot : hottest) {
    hot.count *= ServedTable::kIdsForOneHot;
    hot.error *= ServedTable::kIdsForOneHot;
  }
  return hottest;
}

std::vector<TableSize> TableStore::Sizes() const {
  std::vector<TableSize> sizes(tables().size());
  for (const auto& partition : partitions_) {
    const std::vector<TableSize> of_partition = partition->Sizes();
    for (size_t t = 0; t < sizes.size(); ++t) {
      sizes[t] += of_partition[t];
      if (!tables_[t].ghosts.has_value()) continue;
      const TableSize& ghosts = of_partition[*tables_[t].ghosts];
      sizes[t].ghosts += ghosts.rows;
      sizes[t].bytes += ghosts.bytes;
      sizes[t].refused_rows += ghosts.refused_rows;
    }
  }
  return sizes;
}

}  // namespace keelson
