// A model with the values of a snapshot, which predicts.
#ifndef KEELSON_CORE_STORED_MODEL_STORED_MODEL_H_
#define KEELSON_CORE_STORED_MODEL_STORED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/device/device.h"
#include "core/model/evaluation_pass.h"
#include "core/model/model.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/row_indexer.h"
#include "core/stored_model/snapshot_rows.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Variables are in the device's memory; rows of tables are looked up in the snapshot's files, and
// no table is loaded. Not thread-safe.
class StoredModel {
 public:
  // `config` is final; `device` outlives the model, which has no values yet. Errors of Model.
  static absl::StatusOr<std::unique_ptr<StoredModel>> Create(const v1::TrainConfig& config,
                                                             Device* device);

  const ModelSpec& spec() const { return model_->spec(); }

  // Takes the values of a snapshot. INVALID_ARGUMENT: it lacks a variable of the model, or has
  // another shape for one; the model is as it was then. Other errors of BundleReader and
  // SnapshotRows; the values are then unspecified, unless `spoilt` is still false.
  absl::Status Load(const std::string& prefix, FileSystem* file_system);
  // The last Load has failed after it had begun to replace values.
  bool spoilt() const { return spoilt_; }

  // Predicts for the features of a batch, whose `rows` it sets: the probabilities of
  // cross-entropies, otherwise the scores, of the main loss, [n, outputs]. INVALID_ARGUMENT:
  // CheckFeatures. Errors of the device, which keeps failing then, and of SnapshotRows.
  absl::Status Predict(Batch* batch, std::vector<float>* outputs);
  // Likewise Model::PredictPairs.
  absl::Status PredictPairs(Batch* batch, PairVectors* pairs);

  // Whether the snapshot has a row for the id in a table, a position in ModelSpec::tables. Errors
  // of SnapshotRows.
  absl::StatusOr<bool> HasRow(size_t table, uint64_t id);

 private:
  StoredModel(const v1::TrainConfig& config, std::unique_ptr<Model> model);

  // Gives the model what it needs for the batch.
  absl::Status Prepare(Batch* batch);

  const v1::TrainConfig config_;
  const std::unique_ptr<Model> model_;
  RowIndexer indexer_;
  // Of the model's tables; null without tables.
  std::unique_ptr<SnapshotRows> rows_;
  std::vector<float> buffer_;  // of rows, used again
  bool spoilt_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_STORED_MODEL_STORED_MODEL_H_
