#include "core/stored_model/stored_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/model/row_source.h"
#include "core/scoring/probabilities.h"

namespace keelson {
namespace {

// Checks that the snapshot has all variables before the first one is replaced.
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

StoredModel::StoredModel(const v1::TrainConfig& config, std::unique_ptr<Model> model)
    : config_(config), model_(std::move(model)), indexer_(TableFeaturesOf(model_->spec())) {}

absl::StatusOr<std::unique_ptr<StoredModel>> StoredModel::Create(const v1::TrainConfig& config,
                                                                 Device* device) {
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(config.model(), device));
  return std::unique_ptr<StoredModel>(new StoredModel(config, std::move(model)));
}

absl::Status StoredModel::Load(const std::string& prefix, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(prefix, file_system));
  RETURN_IF_ERROR(CheckVariables(spec(), *bundle));
  std::unique_ptr<SnapshotRows> rows;
  if (!spec().tables.empty()) {
    ASSIGN_OR_RETURN(rows, SnapshotRows::Open(config_, spec(), prefix, file_system));
  }
  spoilt_ = true;
  for (size_t i = 0; i < spec().variables.size(); ++i) {
    ASSIGN_OR_RETURN(const Tensor values, bundle->ReadTensor(spec().variables[i].name));
    RETURN_IF_ERROR(model_->SetVariable(i, values.span()));
  }
  rows_ = std::move(rows);
  spoilt_ = false;
  return absl::OkStatus();
}

absl::Status StoredModel::Prepare(Batch* batch) {
  if (batch->features.size() == spec().records.features.size()) indexer_.Index(batch);
  RETURN_IF_ERROR(CheckFeatures(spec(), *batch));
  return rows_ == nullptr ? absl::OkStatus()
                          : LoadRows(*batch, rows_.get(), &buffer_, model_.get());
}

absl::Status StoredModel::Predict(Batch* batch, std::vector<float>* outputs) {
  RETURN_IF_ERROR(Prepare(batch));
  RETURN_IF_ERROR(model_->Predict(*batch, outputs));
  const LossSpec& loss = spec().main_loss();
  ScoresToProbabilities(loss.kind, loss.outputs, absl::MakeSpan(*outputs));
  return absl::OkStatus();
}

absl::Status StoredModel::PredictPairs(Batch* batch, PairVectors* pairs) {
  RETURN_IF_ERROR(Prepare(batch));
  return model_->PredictPairs(*batch, pairs);
}

absl::StatusOr<bool> StoredModel::HasRow(size_t table, uint64_t id) {
  return rows_->HasRow(table, id);
}

}  // namespace keelson
