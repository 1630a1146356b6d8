#include "dashboard/api/model_predictor.h"

#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/device/factory/device_factory.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/row_indexer.h"

namespace keelson {

ModelPredictor::ModelPredictor(std::string model_dir, int threads, const Clock* clock)
    : directory_(FileSystem::Real(), std::move(model_dir), clock),
      threads_(threads),
      clock_(clock) {}

absl::StatusOr<Prediction> ModelPredictor::Predict(const v1::TrainConfig& config, Batch example) {
  // What is wrong with the example is said whether or not there is a snapshot.
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  if (example.features.size() == spec.records.features.size()) {
    RowIndexer(TableFeaturesOf(spec)).Index(&example);
  }
  RETURN_IF_ERROR(CheckFeatures(spec, example));
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(LoadNewest(config));
  const absl::Duration start = clock_->Monotonic();
  Prediction prediction;
  const absl::Status computed = model_->Predict(&example, &prediction.outputs);
  if (!computed.ok()) {
    // A device that has failed once keeps failing.
    model_ = nullptr;
    return computed;
  }
  prediction.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  prediction.step = loaded_->step;
  return prediction;
}

absl::Status ModelPredictor::LoadNewest(const v1::TrainConfig& config) {
  const std::string bytes = config.SerializeAsString();
  if (bytes != config_) {
    model_ = nullptr;
    config_ = bytes;
    unreadable_.clear();
  }
  if (model_ == nullptr) loaded_ = std::nullopt;
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> snapshots, directory_.List());
  absl::Status newest_trouble;
  for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
    if (loaded_.has_value() && loaded_->prefix == snapshot->prefix &&
        loaded_->time == snapshot->time) {
      return absl::OkStatus();
    }
    if (unreadable_.contains(snapshot->prefix)) continue;
    const absl::Status status = Load(config, *snapshot);
    if (status.ok()) return status;
    LogWarning("no prediction from this snapshot: ", status.message());
    unreadable_.insert(snapshot->prefix);
    newest_trouble.Update(status);
  }
  // A model of a snapshot that was deleted since is still used.
  if (loaded_.has_value()) return absl::OkStatus();
  if (!newest_trouble.ok()) return absl::NotFoundError(newest_trouble.message());
  return absl::NotFoundError("there is no snapshot yet that can be read");
}

absl::Status ModelPredictor::Load(const v1::TrainConfig& config, const SnapshotInfo& snapshot) {
  RETURN_IF_ERROR(MakeModel(config));
  const absl::Status status = model_->Load(snapshot.prefix, FileSystem::Real());
  if (status.ok()) {
    loaded_ = snapshot;
  } else if (model_->spoilt()) {
    loaded_ = std::nullopt;
  }
  return status;
}

absl::Status ModelPredictor::MakeModel(const v1::TrainConfig& config) {
  if (model_ != nullptr) return absl::OkStatus();
  DeviceOptions options;
  options.threads = threads_;
  ASSIGN_OR_RETURN(device_, CreateDevice("cpu", options));
  ASSIGN_OR_RETURN(model_, StoredModel::Create(config, device_.get()));
  return absl::OkStatus();
}

}  // namespace keelson
