// The rows of a snapshot's tables, as a model computes with them.
#ifndef KEELSON_CORE_STORED_MODEL_SNAPSHOT_ROWS_H_
#define KEELSON_CORE_STORED_MODEL_SNAPSHOT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/stored_rows.h"
#include "core/model/row_source.h"
#include "core/model/spec/model_spec.h"
#include "core/optim/table_optimizers.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Looks rows up in the snapshot's files; only what batches need is read. Used by one thread.
class SnapshotRows : public RowSource {
 public:
  // `config` is final, and `model` its model with at least one table. INVALID_ARGUMENT: a table of
  // the snapshot has another dim or other initial values; an optimizer that makes up for missed
  // steps, with a learning rate that depends on an end of training which the configuration does not
  // say. Errors of StoredRows::Open.
  static absl::StatusOr<std::unique_ptr<SnapshotRows>> Open(const v1::TrainConfig& config,
                                                            const ModelSpec& model,
                                                            const std::string& prefix,
                                                            FileSystem* file_system);

  // The model's, with their initial values.
  const std::vector<TableSpec>& tables() const { return tables_; }
  // The snapshot's.
  const StoredTables& stored() const { return stored_->tables(); }

  absl::Status ReadRows(size_t table, absl::Span<const uint64_t> ids,
                        absl::Span<float> rows) override;
  // Whether an id has a row of its own; without one it has the values of an absent row. Errors of
  // StoredRows::Read.
  absl::StatusOr<bool> HasRow(size_t table, uint64_t id);

 private:
  SnapshotRows(std::unique_ptr<StoredRows> stored, TableOptimizers optimizers)
      : stored_(std::move(stored)), optimizers_(std::move(optimizers)) {}

  // Reads rows of a table that the snapshot has into the matrix.
  absl::Status LookUp(size_t table, absl::Span<const uint64_t> ids);
  // Makes those of the matrix absent that have expired.
  void LeaveOutExpired(const TableSpec& spec);
  // Sets the values to what they are after the steps that the rows have missed.
  void CatchUp(size_t table, absl::Span<float> values);

  const std::unique_ptr<StoredRows> stored_;
  const TableOptimizers optimizers_;
  // By table of the model, with its initial values; null where the snapshot has no such table.
  std::vector<TableSpec> tables_;
  std::vector<const StoredTable*> found_;
  uint64_t seed_ = 0;
  float learning_rate_ = 0;  // of missed steps
  RowMatrix matrix_;         // reused
};

}  // namespace keelson

#endif  // KEELSON_CORE_STORED_MODEL_SNAPSHOT_ROWS_H_
