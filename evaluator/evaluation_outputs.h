// What becomes of an evaluation in the model directory: a line in eval/metrics.jsonl, an event in
// eval/, a report, and perhaps an exported model. Evaluator 0 sees to the metrics file, to the
// scalars and to the exports of what the other evaluators of the job have scored, too; their own
// event files are in eval/evaluator-<index>.
#ifndef KEELSON_EVALUATOR_EVALUATION_OUTPUTS_H_
#define KEELSON_EVALUATOR_EVALUATION_OUTPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/cluster/task.h"
#include "core/summary/event_writer.h"
#include "core/summary/histogram.h"
#include "core/tensor/variable.h"
#include "evaluator/evaluation_records.h"
#include "evaluator/exporters.h"
#include "evaluator/snapshot_scorer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// By the variables' names.
using WeightHistograms = std::vector<std::pair<std::string, Histogram>>;

// Not thread-safe. What is nobody's only copy of something (reports, weight histograms, exports) is
// logged and left out where it cannot be written; what the methods return is about metrics files
// and scalars.
class EvaluationOutputs {
 public:
  struct Options {
    Task self;
    v1::TrainConfig config;  // final, with a model directory
    std::vector<VariableSpec> variables;
    // Of exports (as ExportDirectory's), and of leases of the snapshots that they are made of.
    FileSystem* export_files = FileSystem::Real();
    FileSystem* lease_files = FileSystem::Real();
  };

  // Creates MODEL_DIR/eval. Snapshots that earlier lives have scored are offered to the exporters
  // again, since their end may have come in between. `directory` and `clock` outlive the object.
  // Errors of EvaluationRecords::Open and EventWriter::Create.
  static absl::StatusOr<std::unique_ptr<EvaluationOutputs>> Open(
      Options options, const CheckpointDirectory* directory, const Clock* clock);

  // Of all evaluators, by step.
  const std::map<int64_t, EvaluationRecord>& records() const { return records_->records(); }
  const EvaluationRecord* Find(int64_t step) const { return records_->Find(step); }

  // Takes what other evaluators have scored since the last call, and returns it, by step.
  absl::StatusOr<std::map<int64_t, EvaluationRecord>> TakeOthers();

  // The snapshot can still be read. The histograms may be empty.
  absl::Status Publish(const SnapshotInfo& snapshot, const ScoredSnapshot& scored,
                       const WeightHistograms& histograms);

  // The job's final snapshot, which has been scored, is exported where that is wanted. Repeating it
  // does nothing.
  void TakeFinal(int64_t step);

 private:
  EvaluationOutputs(Options options, const CheckpointDirectory* directory, const Clock* clock)
      : options_(std::move(options)), directory_(directory), clock_(clock) {}

  absl::Status OpenFiles();
  absl::Status WriteScalars(const EvaluationRecord& record);
  void WriteWeights(int64_t step, const WeightHistograms& histograms);
  void WriteReportOf(const ScoredSnapshot& scored);
  // Offers the snapshots of the records to the exporters, where they are still there.
  void OfferScored(const std::map<int64_t, EvaluationRecord>& records);
  std::optional<SnapshotInfo> FindSnapshot(int64_t step) const;

  const Options options_;
  const CheckpointDirectory* const directory_;
  const Clock* const clock_;
  std::unique_ptr<EvaluationRecords> records_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<Exporters> exporters_;  // null: another evaluator's business
  bool final_taken_ = false;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATION_OUTPUTS_H_
