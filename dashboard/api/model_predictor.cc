#include "dashboard/api/model_predictor.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/data/columnar_records.h"
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
    DropModel();
    return computed;
  }
  prediction.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  prediction.step = loaded_->step;
  return prediction;
}

absl::Status ModelPredictor::LoadNewest(const v1::TrainConfig& config) {
  const std::string bytes = config.SerializeAsString();
  if (bytes != config_) {
    DropModel();
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
  items_ = nullptr;
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

void ModelPredictor::DropModel() {
  items_ = nullptr;
  model_ = nullptr;
}

absl::StatusOr<NearestItems> ModelPredictor::Nearest(const v1::TrainConfig& config,
                                                     const RetrievalSpec& retrieval,
                                                     const std::vector<bool>& query, Batch example,
                                                     size_t count) {
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  RowIndexer(TableFeaturesOf(spec)).Index(&example);
  RETURN_IF_ERROR(CheckFeatures(spec, example));
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(LoadNewest(config));
  RETURN_IF_ERROR(CheckKnown(query, example));
  const absl::Duration start = clock_->Monotonic();
  RETURN_IF_ERROR(LoadItems(retrieval.item_feature));
  absl::StatusOr<NearestItems> found = FindNearest(retrieval, count, &example);
  if (!found.ok()) {
    DropModel();
    return found;
  }
  found->seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  return found;
}

absl::Status ModelPredictor::CheckKnown(const std::vector<bool>& query, const Batch& example) {
  const ModelSpec& spec = model_->spec();
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.table.has_value()) continue;
    const size_t feature = layer.inputs.front();  // of an embedding a feature
    const FeatureSpec& looked_up = spec.records.features[feature];
    if (!query[feature] || looked_up.kind != FeatureKind::kId) continue;
    const uint64_t id = example.features[feature].ids.front();
    ASSIGN_OR_RETURN(const bool known, model_->HasRow(*layer.table, id));
    if (known) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("features.", looked_up.name, ": expected an id that has a row in the table \"",
                     spec.tables[*layer.table].name, "\", found ", id));
  }
  return absl::OkStatus();
}

absl::Status ModelPredictor::LoadItems(size_t item_feature) {
  if (items_ != nullptr) return absl::OkStatus();
  const std::string path = JoinPath(directory_.model_dir(), "eval/items.columnar");
  RecordSchema schema = model_->spec().records;
  schema.labels.clear();
  const auto items = OpenColumnarRecords({path}, schema, FileSystem::Real());
  if (absl::IsNotFound(items.status())) {
    return absl::NotFoundError("the evaluator has not written yet which items there are");
  }
  RETURN_IF_ERROR(items.status());
  ASSIGN_OR_RETURN(items_, ItemVectors::Create(**items, item_feature, model_.get(), device_.get()));
  return absl::OkStatus();
}

absl::StatusOr<NearestItems> ModelPredictor::FindNearest(const RetrievalSpec& retrieval,
                                                         size_t count, Batch* example) {
  PairVectors pairs;
  RETURN_IF_ERROR(model_->PredictPairs(example, &pairs));
  absl::flat_hash_set<uint64_t> excluded;
  for (const size_t feature : retrieval.exclude_features) {
    excluded.insert(example->features[feature].ids.begin(), example->features[feature].ids.end());
  }
  NearestItems found;
  ASSIGN_OR_RETURN(found.nearest, items_->Nearest(pairs.queries, count, excluded));
  found.items = items_->size();
  found.step = loaded_->step;
  return found;
}

}  // namespace keelson
