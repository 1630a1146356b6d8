#include "evaluator/snapshot_scorer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status NoRecords() {
  return absl::InvalidArgumentError("evaluation: expected at least one record, found none");
}

absl::Status WrongVariable(const BundleReader& bundle, const VariableSpec& variable,
                           absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(bundle.prefix(), ": variable '", variable.name,
                                                 "': the model expects float32 ",
                                                 variable.shape.ToString(), ", found ", found));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotScorer>> SnapshotScorer::Create(
    const v1::TrainConfig& config, Device* device, const Dataset* eval, const Clock* clock,
    const StopSignal* stop) {
  if (eval == nullptr || eval->num_records() == 0) return NoRecords();
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(config.model(), device));
  ASSIGN_OR_RETURN(std::vector<MetricSpec> metrics,
                   InferMetrics(config.evaluation(), model->spec()));
  return std::unique_ptr<SnapshotScorer>(new SnapshotScorer(
      std::move(model), std::move(metrics), config.evaluation().batch_size(), eval, clock, stop));
}

absl::StatusOr<EvaluationRecord> SnapshotScorer::Score(const SnapshotInfo& snapshot,
                                                       SnapshotLease* lease) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(snapshot.prefix));
  RETURN_IF_ERROR(CheckVariables(*bundle));
  RETURN_IF_ERROR(LoadVariables(*bundle, lease));
  ASSIGN_OR_RETURN(const EvaluationSums sums, Evaluate());
  EvaluationRecord record;
  record.step = snapshot.step;
  record.wall_time = clock_->Now();
  record.metrics = MetricValues(sums, metrics_);
  record.examples = sums.examples;
  record.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  return record;
}

absl::Status SnapshotScorer::CheckVariables(const BundleReader& bundle) const {
  std::map<std::string, TensorInfo> stored;
  for (TensorInfo& tensor : bundle.List()) stored.emplace(tensor.name, std::move(tensor));
  for (const VariableSpec& variable : model_->variables()) {
    const auto found = stored.find(variable.name);
    if (found == stored.end()) return WrongVariable(bundle, variable, "none");
    const TensorInfo& tensor = found->second;
    if (tensor.dtype != BundleDtype::kFloat32 || tensor.shape != variable.shape) {
      return WrongVariable(bundle, variable,
                           absl::StrCat(DtypeName(tensor.dtype), " ", tensor.shape.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotScorer::LoadVariables(const BundleReader& bundle, SnapshotLease* lease) {
  for (size_t i = 0; i < model_->variables().size(); ++i) {
    KeepUp(lease);
    ASSIGN_OR_RETURN(const Tensor values, bundle.ReadTensor(model_->variables()[i].name));
    RETURN_IF_ERROR(model_->SetVariable(static_cast<int>(i), values.span()));
  }
  return absl::OkStatus();
}

void SnapshotScorer::KeepUp(SnapshotLease* lease) const {
  if (lease == nullptr || lease->expires() - clock_->Now() > SnapshotLease::kDuration / 2) return;
  const absl::Status status = lease->Renew();
  if (!status.ok()) LogWarning("the snapshot may be deleted: ", status.message());
}

absl::StatusOr<EvaluationSums> SnapshotScorer::Evaluate() {
  EvaluationSums sums;
  std::vector<int64_t> records;
  for (int64_t begin = 0; begin < eval_->num_records(); begin += batch_size_) {
    if (stop_->raised()) return absl::CancelledError("while scoring a snapshot");
    records.resize(static_cast<size_t>(std::min(batch_size_, eval_->num_records() - begin)));
    std::iota(records.begin(), records.end(), begin);
    RETURN_IF_ERROR(eval_->Read(records, &batch_));
    ASSIGN_OR_RETURN(const EvaluationSums batch_sums, model_->Evaluate(batch_, metrics_));
    sums.Add(batch_sums);
  }
  return sums;
}

}  // namespace keelson
