#include "core/serving/served_model.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/device/factory/device_factory.h"

namespace keelson {

ServedModel::ServedModel(const v1::TrainConfig& config, FileSystem* file_system, const Clock* clock)
    : directory_(file_system, config.checkpoint().model_dir(), clock), file_system_(file_system) {}

absl::StatusOr<std::unique_ptr<ServedModel>> ServedModel::Create(const v1::TrainConfig& config,
                                                                 int threads,
                                                                 FileSystem* file_system,
                                                                 const Clock* clock) {
  std::unique_ptr<ServedModel> served(new ServedModel(config, file_system, clock));
  for (std::unique_ptr<Turn>& turn : served->turns_) {
    turn = std::make_unique<Turn>();
    DeviceOptions options;
    options.threads = threads;
    ASSIGN_OR_RETURN(turn->device, CreateDevice("cpu", options));
    MutexLock lock(&turn->mu);
    ASSIGN_OR_RETURN(turn->model, StoredModel::Create(config, turn->device.get()));
  }
  return served;
}

absl::Status ServedModel::Refresh() {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory_.List());
  if (snapshots.empty()) return absl::OkStatus();
  const SnapshotInfo& newest = snapshots.back();
  size_t next = 0;
  {
    MutexLock lock(&mu_);
    if (served_.has_value() && served_->prefix == newest.prefix && served_->time == newest.time) {
      return absl::OkStatus();
    }
    if (current_.has_value()) next = 1 - *current_;
  }
  {
    // The last predictions of the snapshot before the one that is served may still compute there.
    MutexLock lock(&turns_[next]->mu);
    RETURN_IF_ERROR(turns_[next]->model->Load(newest.prefix, file_system_));
    turns_[next]->step = newest.step;
  }
  MutexLock lock(&mu_);
  current_ = next;
  served_ = newest;
  return absl::OkStatus();
}

std::optional<int64_t> ServedModel::step() const {
  MutexLock lock(&mu_);
  if (!served_.has_value()) return std::nullopt;
  return served_->step;
}

ServedModel::Turn* ServedModel::current() {
  MutexLock lock(&mu_);
  return current_.has_value() ? turns_[*current_].get() : nullptr;
}

absl::StatusOr<ServedPrediction> ServedModel::Predict(Batch batch) {
  while (true) {
    Turn* const turn = current();
    if (turn == nullptr) {
      return absl::UnavailableError("there is no snapshot yet that can be read");
    }
    MutexLock lock(&turn->mu);
    // While this waited, the turns have changed, and this one may hold a snapshot that is not
    // served yet, or values of one that could not be read.
    if (turn != current()) continue;
    ServedPrediction prediction;
    prediction.step = turn->step;
    RETURN_IF_ERROR(turn->model->Predict(&batch, &prediction.outputs));
    return prediction;
  }
}

}  // namespace keelson
