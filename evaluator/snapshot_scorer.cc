#include "evaluator/snapshot_scorer.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_state.h"
#include "core/scoring/report.h"
#include "core/stored_model/snapshot_rows.h"
#include "evaluator/retrieval_scorer.h"

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
    const StopSignal* stop, FileSystem* file_system) {
  if (eval == nullptr || eval->num_records() == 0) return NoRecords();
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(config.model(), device));
  ASSIGN_OR_RETURN(std::vector<MetricSpec> metrics,
                   InferMetrics(config.evaluation(), model->spec()));
  return std::unique_ptr<SnapshotScorer>(new SnapshotScorer(
      device, std::move(model), std::move(metrics), config, eval, clock, stop, file_system));
}

absl::StatusOr<ScoredSnapshot> SnapshotScorer::Score(const SnapshotInfo& snapshot,
                                                     SnapshotLease* lease,
                                                     const VariableCallback& on_variable) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(snapshot.prefix, file_system_));
  ASSIGN_OR_RETURN(const uint64_t snapshot_id, ReadSnapshotId(*bundle));
  RETURN_IF_ERROR(CheckVariables(*bundle));
  RETURN_IF_ERROR(LoadVariables(*bundle, lease, on_variable));
  std::unique_ptr<SnapshotRows> rows;
  if (!model_->spec().tables.empty()) {
    ASSIGN_OR_RETURN(rows,
                     SnapshotRows::Open(config_, model_->spec(), snapshot.prefix, file_system_));
  }
  ASSIGN_OR_RETURN(EvaluationOutcome outcome, Evaluate(rows.get()));
  ScoredSnapshot scored;
  scored.record.step = outcome.report.step = snapshot.step;
  scored.record.wall_time = outcome.report.time = clock_->Now();
  scored.record.metrics = std::move(outcome.metrics);
  scored.record.snapshot_id = snapshot_id;
  scored.record.examples = outcome.report.examples;
  scored.report = FormatReport(outcome.report);
  scored.record.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  return scored;
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

absl::Status SnapshotScorer::LoadVariables(const BundleReader& bundle, SnapshotLease* lease,
                                           const VariableCallback& on_variable) {
  for (size_t i = 0; i < model_->variables().size(); ++i) {
    KeepUp(lease);
    const VariableSpec& variable = model_->variables()[i];
    ASSIGN_OR_RETURN(const Tensor values, bundle.ReadTensor(variable.name));
    if (on_variable != nullptr) on_variable(variable, values.span());
    RETURN_IF_ERROR(model_->SetVariable(i, values.span()));
  }
  return absl::OkStatus();
}

void SnapshotScorer::KeepUp(SnapshotLease* lease) const {
  if (lease == nullptr || lease->expires() - clock_->Now() > SnapshotLease::kDuration / 2) return;
  const absl::Status status = lease->Renew();
  if (!status.ok()) LogWarning("the snapshot may be deleted: ", status.message());
}

int64_t SnapshotScorer::NumRecords() const {
  const int64_t all = eval_->num_records();
  // Uses no product, which may overflow.
  const int64_t batches = (all + batch_size_ - 1) / batch_size_;
  return max_batches_ == 0 || max_batches_ >= batches ? all : max_batches_ * batch_size_;
}

absl::StatusOr<EvaluationOutcome> SnapshotScorer::Evaluate(RowSource* rows) {
  EvaluationTally tally(&model_->spec(), &metrics_, class_names_);
  RetrievalScorer retrieval(model_.get(), device_, metrics_);
  PairVectors* const pairs = retrieval.empty() ? nullptr : &pairs_;
  RETURN_IF_ERROR(ForEachBatch(rows, [&](int64_t first) -> absl::Status {
    ASSIGN_OR_RETURN(const EvaluationSums sums,
                     model_->Evaluate(batch_, metrics_, &scores_, pairs));
    tally.Add(first, batch_, sums, absl::MakeSpan(scores_));
    if (pairs != nullptr) retrieval.AddItems(batch_, *pairs);
    return absl::OkStatus();
  }));
  EvaluationOutcome outcome = tally.Finish();
  if (retrieval.empty()) return outcome;
  RETURN_IF_ERROR(ForEachBatch(rows, [&](int64_t) { return retrieval.AddQueries(batch_); }));
  retrieval.AddTo(&outcome);
  return outcome;
}

absl::Status SnapshotScorer::ForEachBatch(RowSource* rows,
                                          absl::FunctionRef<absl::Status(int64_t first)> use) {
  const int64_t end = NumRecords();
  std::vector<int64_t> records;
  for (int64_t begin = 0; begin < end; begin += batch_size_) {
    if (stop_->raised()) return absl::CancelledError("while scoring a snapshot");
    records.resize(std::min(batch_size_, end - begin));
    std::iota(records.begin(), records.end(), begin);
    RETURN_IF_ERROR(eval_->Read(records, &batch_));
    row_indexer_.Index(&batch_);
    if (rows != nullptr) RETURN_IF_ERROR(LoadRows(batch_, rows, &rows_, model_.get()));
    RETURN_IF_ERROR(use(begin));
  }
  return absl::OkStatus();
}

}  // namespace keelson
