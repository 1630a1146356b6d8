#include "core/stored_model/snapshot_rows.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "core/config/initial_values.h"
#include "core/optim/learning_rate.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"

namespace keelson {
absl::StatusOr<std::unique_ptr<SnapshotRows>> SnapshotRows::Open(const v1::TrainConfig& config,
                                                                 const ModelSpec& model,
                                                                 const std::string& prefix,
                                                                 FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::vector<TableSpec> tables,
                   TablesWithInitialValues(config.initial_values(), model.variables, model.tables));
  ASSIGN_OR_RETURN(
      TableOptimizers optimizers,
      TableOptimizers::Create({config.optimizer(), config.consistency().stale_gradients(),
                               config.learning_rate().base()},
                              tables));
  ASSIGN_OR_RETURN(std::unique_ptr<StoredRows> stored, StoredRows::Open(prefix, file_system));
  std::unique_ptr<SnapshotRows> rows(new SnapshotRows(std::move(stored), std::move(optimizers)));
  rows->seed_ = config.train().seed();
  const StoredTables& all = rows->stored_->tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    const StoredTable* const found = all.Find(tables[t].name);
    if (found != nullptr) RETURN_IF_ERROR(all.CheckSame(*found, tables[t], rows->seed_));
    rows->found_.push_back(found);
    if (!rows->optimizers_.Of(t).catches_up()) continue;
    ASSIGN_OR_RETURN(
        const LearningRateSchedule schedule,
        LearningRateSchedule::Create(config.learning_rate(), config.train().max_steps()));
    rows->learning_rate_ = schedule.At(std::max<int64_t>(0, all.steps_done() - 1));
  }
  rows->tables_ = std::move(tables);
  return rows;
}

absl::Status SnapshotRows::ReadRows(size_t table, absl::Span<const uint64_t> ids,
                                    absl::Span<float> rows) {
  const TableSpec& spec = tables_[table];
  const InitialRows absent(spec.absent(), seed_, TableSalt(spec.name));
  if (found_[table] == nullptr) {
    for (size_t i = 0; i < ids.size(); ++i) {
      absent.Fill(ids[i], rows.subspan(i * spec.dim, spec.dim));
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(LookUp(table, ids));
  for (size_t i = 0; i < ids.size(); ++i) {
    const absl::Span<float> row = rows.subspan(i * spec.dim, spec.dim);
    if (matrix_.present[i]) {
      std::copy_n(matrix_.rows.begin() + i * matrix_.floats, spec.dim, row.begin());
    } else {
      absent.Fill(ids[i], row);
    }
  }
  if (optimizers_.Of(table).catches_up()) CatchUp(table, rows);
  return absl::OkStatus();
}

absl::StatusOr<bool> SnapshotRows::HasRow(size_t table, uint64_t id) {
  if (found_[table] == nullptr) return false;
  RETURN_IF_ERROR(LookUp(table, {id}));
  return matrix_.present.front();
}

absl::Status SnapshotRows::LookUp(size_t table, absl::Span<const uint64_t> ids) {
  const TableSpec& spec = tables_[table];
  const RowOptimizer& optimizer = optimizers_.Of(table);
  std::vector<TableSlot> slots;
  if (optimizer.catches_up()) slots = TableSlotsOf(optimizer.slots());
  const StoredRows::Wanted wanted = {slots,
                                     /*counters=*/optimizer.catches_up() || spec.expires()};
  RETURN_IF_ERROR(stored_->Read(*found_[table], ids, wanted, &matrix_));
  if (spec.expires()) LeaveOutExpired(spec);
  return absl::OkStatus();
}

// A snapshot has rows that have expired and were not swept yet.
void SnapshotRows::LeaveOutExpired(const TableSpec& spec) {
  const int64_t done = stored_->tables().steps_done();
  for (size_t i = 0; i < matrix_.present.size(); ++i) {
    if (MissedSteps(matrix_.last_steps[i], done) >= spec.expire_after_steps) {
      matrix_.present[i] = false;
    }
  }
}

void SnapshotRows::CatchUp(size_t table, absl::Span<float> values) {
  const int64_t done = stored_->tables().steps_done();
  std::vector<const float*> rows;
  std::vector<uint32_t> missed;
  for (size_t i = 0; i < matrix_.present.size(); ++i) {
    // What an absent row has missed makes no difference.
    rows.push_back(matrix_.present[i] ? matrix_.rows.data() + i * matrix_.floats : nullptr);
    missed.push_back(MissedSteps(matrix_.last_steps[i], done));
  }
  RowReadBatch batch;
  batch.rows = rows;
  batch.missed = missed;
  batch.step = done;
  batch.learning_rate = learning_rate_;
  batch.values = values.data();
  batch.stride = static_cast<size_t>(tables_[table].dim);
  optimizers_.Of(table).Read(batch);
}

}  // namespace keelson
