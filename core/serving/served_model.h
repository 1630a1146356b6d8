// A job's model as it is served: the values of its newest snapshot, and of the next one as soon as
// that is committed.
#ifndef KEELSON_CORE_SERVING_SERVED_MODEL_H_
#define KEELSON_CORE_SERVING_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/device/device.h"
#include "core/model/spec/batch.h"
#include "core/stored_model/stored_model.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ServedPrediction {
  int64_t step = 0;            // of the snapshot
  std::vector<float> outputs;  // StoredModel::Predict's
};

// Two models take turns: the next snapshot is loaded into the one while the other answers, so that
// no prediction waits for a snapshot, and each has its variables and its tables' rows of one cut.
// Thread-safe; one thread calls Refresh.
class ServedModel {
 public:
  // `config` is final, with a model directory. `threads` of each model's device; 0: one per core.
  // `file_system` and `clock` outlive this. Errors of CreateDevice and StoredModel.
  static absl::StatusOr<std::unique_ptr<ServedModel>> Create(const v1::TrainConfig& config,
                                                             int threads, FileSystem* file_system,
                                                             const Clock* clock);

  // Takes the newest snapshot where it is another one than that which is served. Where it cannot be
  // read, which is the returned error, what was served before still is. OK without a snapshot.
  absl::Status Refresh();

  // The step of the snapshot that is served; nullopt: there was none yet.
  std::optional<int64_t> step() const;

  // Predicts with the snapshot that is served, never with one of before a prediction that has
  // returned. UNAVAILABLE: there was no snapshot yet. Otherwise errors of StoredModel::Predict.
  absl::StatusOr<ServedPrediction> Predict(Batch batch);

 private:
  // A model, which computes for one prediction at a time.
  struct Turn {
    std::unique_ptr<Device> device;
    Mutex mu;  // held before mu_
    std::unique_ptr<StoredModel> model ABSL_GUARDED_BY(mu);
    int64_t step ABSL_GUARDED_BY(mu) = 0;
  };

  ServedModel(const v1::TrainConfig& config, FileSystem* file_system, const Clock* clock);

  // The model that answers now; null: there was no snapshot yet.
  Turn* current();

  const CheckpointDirectory directory_;
  FileSystem* const file_system_;
  std::unique_ptr<Turn> turns_[2];

  mutable Mutex mu_;
  // Which of turns_ answers, and with what; nullopt: there was no snapshot yet.
  std::optional<size_t> current_ ABSL_GUARDED_BY(mu_);
  std::optional<SnapshotInfo> served_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_SERVED_MODEL_H_
