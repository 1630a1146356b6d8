#include "evaluator/snapshot_scorer.h"

#include <algorithm>
#include <numeric>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_state.h"
#include "core/stored_model/snapshot_rows.h"
#include "evaluator/example_records.h"
#include "evaluator/item_records.h"
#include "evaluator/retrieval_scorer.h"
#include "evaluator/snapshot_values.h"

namespace keelson {
namespace {

absl::Status NoRecords() {
  return absl::InvalidArgumentError("evaluation: expected at least one record, found none");
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
  RETURN_IF_ERROR(CheckVariables(*bundle, variables()));
  RETURN_IF_ERROR(ReadVariables(*bundle, variables(), lease, clock_,
                                [&](size_t i, absl::Span<const float> values) {
                                  if (on_variable != nullptr) on_variable(variables()[i], values);
                                  return model_->SetVariable(i, values);
                                }));
  std::unique_ptr<SnapshotRows> rows;
  if (!model_->spec().tables.empty()) {
    ASSIGN_OR_RETURN(rows,
                     SnapshotRows::Open(config_, model_->spec(), snapshot.prefix, file_system_));
  }
  ASSIGN_OR_RETURN(EvaluationOutcome outcome, Evaluate(rows.get()));
  return MakeScoredSnapshot(std::move(outcome), snapshot.step, snapshot_id, clock_->Now(),
                            clock_->Monotonic() - start);
}

void SnapshotScorer::WriteForDashboard(const std::string& model_dir) const {
  const RecordSchema& records = model_->spec().records;
  const absl::Status examples = WriteExamples(model_dir, *eval_, records, file_system_);
  if (!examples.ok()) LogWarning("no examples for the dashboard: ", examples.message());
  for (const MetricSpec& metric : metrics_) {
    if (!metric.is_retrieval()) continue;
    const absl::Status items = WriteItemRecords(model_dir, *eval_, num_records(), records,
                                                metric.retrieval.item_feature, file_system_);
    if (!items.ok()) LogWarning("no items for the dashboard: ", items.message());
    return;
  }
}

int64_t SnapshotScorer::num_records() const {
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
  for (WrongExample& example : outcome.report.wrong) {
    ASSIGN_OR_RETURN(example.columns, eval_->ReadColumns(example.record));
  }
  if (retrieval.empty()) return outcome;
  RETURN_IF_ERROR(ForEachBatch(rows, [&](int64_t) { return retrieval.AddQueries(batch_); }));
  retrieval.AddTo(&outcome);
  return outcome;
}

absl::Status SnapshotScorer::ForEachBatch(RowSource* rows,
                                          absl::FunctionRef<absl::Status(int64_t first)> use) {
  const int64_t end = num_records();
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
