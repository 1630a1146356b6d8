// Scores one snapshot: its variables, on the evaluation records, which are read once more where a
// metric is one of retrieval.
#ifndef KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_
#define KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/model/evaluation_pass.h"
#include "core/model/model.h"
#include "core/model/row_source.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/row_indexer.h"
#include "core/scoring/evaluation_tally.h"
#include "core/tensor/variable.h"
#include "evaluator/scorer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// With a model of layers, on a device.
class SnapshotScorer : public Scorer {
 public:
  // `config` is final. `file_system` is that of the snapshots. All outlive the scorer.
  // INVALID_ARGUMENT: there are no evaluation records (`eval` is null or empty), or the errors of
  // Model::Create and InferMetrics.
  static absl::StatusOr<std::unique_ptr<SnapshotScorer>> Create(
      const v1::TrainConfig& config, Device* device, const Dataset* eval, const Clock* clock,
      const StopSignal* stop, FileSystem* file_system = FileSystem::Real());

  const std::vector<MetricSpec>& metrics() const { return metrics_; }

  const std::vector<VariableSpec>& variables() const override { return model_->variables(); }
  std::string computes() const override { return device_->name(); }
  // Those of the first evaluation.steps batches, or all.
  int64_t num_records() const override;
  // Scores these records. Other errors: the device's.
  absl::StatusOr<ScoredSnapshot> Score(const SnapshotInfo& snapshot, SnapshotLease* lease = nullptr,
                                       const VariableCallback& on_variable = nullptr) override;
  // Some of the records, and the items that it finds.
  void WriteForDashboard(const std::string& model_dir) const override;

 private:
  SnapshotScorer(Device* device, std::unique_ptr<Model> model, std::vector<MetricSpec> metrics,
                 const v1::TrainConfig& config, const Dataset* eval, const Clock* clock,
                 const StopSignal* stop, FileSystem* file_system)
      : device_(device),
        model_(std::move(model)),
        metrics_(std::move(metrics)),
        config_(config),
        class_names_(config.data().class_names().begin(), config.data().class_names().end()),
        batch_size_(config.evaluation().batch_size()),
        max_batches_(config.evaluation().steps()),
        eval_(eval),
        clock_(clock),
        stop_(stop),
        file_system_(file_system),
        row_indexer_(TableFeaturesOf(model_->spec())) {}

  // `rows` may be null: the model has no tables.
  absl::StatusOr<EvaluationOutcome> Evaluate(RowSource* rows);
  // Calls `use` when batch_ has the records from `first` on, and the model the rows of them.
  absl::Status ForEachBatch(RowSource* rows, absl::FunctionRef<absl::Status(int64_t first)> use);

  Device* const device_;
  const std::unique_ptr<Model> model_;
  const std::vector<MetricSpec> metrics_;
  const v1::TrainConfig config_;
  const std::vector<std::string> class_names_;
  const int64_t batch_size_;
  const int64_t max_batches_;  // 0: all
  const Dataset* const eval_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  FileSystem* const file_system_;
  // Reused.
  Batch batch_;
  RowIndexer row_indexer_;
  std::vector<float> rows_;
  std::vector<float> scores_;
  PairVectors pairs_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_
