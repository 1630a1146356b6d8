// Scores one snapshot: its variables, on all evaluation records.
#ifndef KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_
#define KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/model/metrics.h"
#include "core/model/model.h"
#include "evaluator/metrics_log.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Not thread-safe.
class SnapshotScorer {
 public:
  // `config` is final. All outlive the scorer. INVALID_ARGUMENT: there are no evaluation records
  // (`eval` is null or empty), or the errors of Model::Create and InferMetrics.
  static absl::StatusOr<std::unique_ptr<SnapshotScorer>> Create(const v1::TrainConfig& config,
                                                                Device* device, const Dataset* eval,
                                                                const Clock* clock,
                                                                const StopSignal* stop);

  // `lease` (may be null) is kept up while the snapshot is read. One that is deleted meanwhile does
  // no harm. Errors, naming the file or the variable:
  // NOT_FOUND: a file of the snapshot is missing. DATA_LOSS: it is damaged. INVALID_ARGUMENT: it
  // has not the model's variables, or the records do not fit the model. CANCELLED: stopped.
  // Otherwise the device's errors and those of file.h.
  absl::StatusOr<EvaluationRecord> Score(const SnapshotInfo& snapshot,
                                         SnapshotLease* lease = nullptr);

 private:
  SnapshotScorer(std::unique_ptr<Model> model, std::vector<MetricSpec> metrics, int64_t batch_size,
                 const Dataset* eval, const Clock* clock, const StopSignal* stop)
      : model_(std::move(model)),
        metrics_(std::move(metrics)),
        batch_size_(batch_size),
        eval_(eval),
        clock_(clock),
        stop_(stop) {}

  absl::Status CheckVariables(const BundleReader& bundle) const;
  absl::Status LoadVariables(const BundleReader& bundle, SnapshotLease* lease);
  void KeepUp(SnapshotLease* lease) const;
  absl::StatusOr<EvaluationSums> Evaluate();

  const std::unique_ptr<Model> model_;
  const std::vector<MetricSpec> metrics_;
  const int64_t batch_size_;
  const Dataset* const eval_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  Batch batch_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SNAPSHOT_SCORER_H_
