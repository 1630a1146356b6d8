// Makes predictions with the newest snapshot in a model directory.
#ifndef KEELSON_DASHBOARD_API_MODEL_PREDICTOR_H_
#define KEELSON_DASHBOARD_API_MODEL_PREDICTOR_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/device/device.h"
#include "core/model/spec/batch.h"
#include "core/stored_model/stored_model.h"
#include "dashboard/api/item_vectors.h"
#include "dashboard/api/predictor.h"

namespace keelson {

// Computes on a CPU device of its own, one example at a time. The model is loaded with the first
// request, and again when a request finds a newer snapshot; one that cannot be read is skipped.
// Rows of tables are looked up in the snapshot's files, and no table is loaded. Items are those of
// eval/items.columnar, whose vectors are computed with the first request for each snapshot.
class ModelPredictor : public Predictor {
 public:
  // `threads` of the device; 0: one per core. `clock` outlives the predictor.
  ModelPredictor(std::string model_dir, int threads, const Clock* clock);

  absl::StatusOr<Prediction> Predict(const v1::TrainConfig& config, Batch example) override;
  absl::StatusOr<NearestItems> Nearest(const v1::TrainConfig& config,
                                       const RetrievalSpec& retrieval,
                                       const std::vector<bool>& query, Batch example,
                                       size_t count) override;

 private:
  absl::Status LoadNewest(const v1::TrainConfig& config) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Load(const v1::TrainConfig& config, const SnapshotInfo& snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status MakeModel(const v1::TrainConfig& config) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropModel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Computes the items' vectors under the loaded values, unless they are there.
  absl::Status LoadItems(size_t item_feature) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Every id of the features in `query` has a row in its table.
  absl::Status CheckKnown(const std::vector<bool>& query, const Batch& example)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<NearestItems> FindNearest(const RetrievalSpec& retrieval, size_t count,
                                           Batch* example) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const CheckpointDirectory directory_;
  const int threads_;
  const Clock* const clock_;

  Mutex mu_;
  std::unique_ptr<Device> device_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<StoredModel> model_ ABSL_GUARDED_BY(mu_);
  // The items belong to the loaded snapshot; null: nobody has asked for them yet.
  std::unique_ptr<ItemVectors> items_ ABSL_GUARDED_BY(mu_);
  // The job's configuration, as bytes.
  std::string config_ ABSL_GUARDED_BY(mu_);
  // The snapshot whose values the model has; nullopt: none.
  std::optional<SnapshotInfo> loaded_ ABSL_GUARDED_BY(mu_);
  // Files of snapshots that could not be read; only those that are listed.
  std::set<std::string> unreadable_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_MODEL_PREDICTOR_H_
