#include "dashboard/api/model_predictor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/device/factory/device_factory.h"
#include "core/model/row_source.h"
#include "core/model/spec/row_indexer.h"
#include "core/scoring/probabilities.h"

namespace keelson {
namespace {

// Checks that the snapshot has all variables before memory for the model is allocated.
absl::Status CheckVariables(const ModelSpec& spec, const BundleReader& bundle) {
  for (const VariableSpec& variable : spec.variables) {
    ASSIGN_OR_RETURN(const TensorInfo tensor, bundle.Info(variable.name));
    if (tensor.shape == variable.shape) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(bundle.prefix(), ": variable '", variable.name, "': the model expects ",
                     variable.shape.ToString(), ", found ", tensor.shape.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

ModelPredictor::ModelPredictor(std::string model_dir, int threads, const Clock* clock)
    : directory_(FileSystem::Real(), std::move(model_dir), clock),
      threads_(threads),
      clock_(clock) {}

absl::StatusOr<Prediction> ModelPredictor::Predict(const v1::TrainConfig& config, Batch example) {
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  if (example.features.size() == spec.records.features.size()) {
    RowIndexer(TableFeaturesOf(spec)).Index(&example);
  }
  RETURN_IF_ERROR(CheckFeatures(spec, example));
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(LoadNewest(config, spec));
  const absl::Duration start = clock_->Monotonic();
  Prediction prediction;
  if (rows_ != nullptr) {
    std::vector<float> buffer;
    RETURN_IF_ERROR(LoadRows(example, rows_.get(), &buffer, model_.get()));
  }
  const absl::Status computed = model_->Predict(example, &prediction.outputs);
  if (!computed.ok()) {
    // A device that has failed once keeps failing.
    model_ = nullptr;
    return computed;
  }
  ScoresToProbabilities(spec.main_loss().kind, spec.main_loss().outputs,
                        absl::MakeSpan(prediction.outputs));
  prediction.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  prediction.step = loaded_->step;
  return prediction;
}

absl::Status ModelPredictor::LoadNewest(const v1::TrainConfig& config, const ModelSpec& spec) {
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
    const absl::Status status = Load(config, spec, *snapshot);
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

absl::Status ModelPredictor::Load(const v1::TrainConfig& config, const ModelSpec& spec,
                                  const SnapshotInfo& snapshot) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(snapshot.prefix));
  RETURN_IF_ERROR(CheckVariables(spec, *bundle));
  std::unique_ptr<SnapshotRows> rows;
  if (!spec.tables.empty()) {
    ASSIGN_OR_RETURN(rows, SnapshotRows::Open(config, spec, snapshot.prefix, FileSystem::Real()));
  }
  RETURN_IF_ERROR(MakeModel(config.model()));
  for (size_t i = 0; i < spec.variables.size(); ++i) {
    const absl::StatusOr<Tensor> values = bundle->ReadTensor(spec.variables[i].name);
    const absl::Status set = values.ok() ? model_->SetVariable(i, values->span()) : values.status();
    if (set.ok()) continue;
    // A part of the values is now those of another snapshot.
    loaded_ = std::nullopt;
    return set;
  }
  rows_ = std::move(rows);
  loaded_ = snapshot;
  return absl::OkStatus();
}

absl::Status ModelPredictor::MakeModel(const v1::ModelConfig& config) {
  if (model_ != nullptr) return absl::OkStatus();
  DeviceOptions options;
  options.threads = threads_;
  ASSIGN_OR_RETURN(device_, CreateDevice("cpu", options));
  ASSIGN_OR_RETURN(model_, Model::Create(config, device_.get()));
  return absl::OkStatus();
}

}  // namespace keelson
