// Writes an evaluation to the model directory: a line in eval/metrics.jsonl, an event in eval/, a
// report, and perhaps an exported model. Evaluator 0 also writes the lines, scalars and exports of
// the other evaluators' evaluations; their own event files are in eval/evaluator-<index>.
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
#include "evaluator/scorer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// By the variables' names.
using WeightHistograms = std::vector<std::pair<std::string, Histogram>>;

// Not thread-safe. Reports, weight histograms and exports are not essential: one that cannot be
// written is logged and left out. Returned errors are those of metrics files and scalars.
class EvaluationOutputs {
 public:
  struct Options {
    Task self;
    v1::TrainConfig config;  // final, with a model directory
    std::vector<VariableSpec> variables;
    // The file system of the model directory.
    FileSystem* file_system = FileSystem::Real();
    // The file system for exports (as ExportDirectory's), and for leases of their snapshots.
    FileSystem* export_files = FileSystem::Real();
    FileSystem* lease_files = FileSystem::Real();
  };

  // Creates MODEL_DIR/eval. Snapshots that earlier processes have scored are offered to the
  // exporters again, since such a process may have ended before exporting. `directory` and `clock`
  // outlive the object. Errors of EvaluationRecords::Open and EventWriter::Create.
  static absl::StatusOr<std::unique_ptr<EvaluationOutputs>> Open(
      Options options, const CheckpointDirectory* directory, const Clock* clock);

  // The records of all evaluators, by step.
  const std::map<int64_t, EvaluationRecord>& records() const { return records_->records(); }
  const EvaluationRecord* Find(int64_t step) const { return records_->Find(step); }

  // Takes the evaluations that other evaluators have made since the last call, and returns them by
  // step.
  absl::StatusOr<std::map<int64_t, EvaluationRecord>> TakeOthers();

  // Training has gone back to this step: evaluations of later ones are dropped, and exports of the
  // latest among them. Errors of EvaluationRecords::ForgetAfter.
  absl::Status ForgetAfter(int64_t step);

  // Writes an evaluation. The snapshot must still be readable. The histograms may be empty.
  absl::Status Publish(const SnapshotInfo& snapshot, const ScoredSnapshot& scored,
                       const WeightHistograms& histograms);

  // Exports the job's final snapshot, which has been scored, if the configuration says so.
  // Repeating it does nothing.
  void TakeFinal(int64_t step);

 private:
  EvaluationOutputs(Options options, const CheckpointDirectory* directory, const Clock* clock)
      : options_(std::move(options)), directory_(directory), clock_(clock) {}

  absl::Status OpenFiles();
  // Where other evaluators hand their histograms over to the first one.
  std::string HistogramsPath() const;
  absl::Status WriteScalars(const EvaluationRecord& record);
  void WriteWeights(int64_t step, const WeightHistograms& histograms);
  void WriteReportOf(const ScoredSnapshot& scored);
  // Offers the snapshots of the records, as far as they still exist, to the exporters.
  void OfferScored(const std::map<int64_t, EvaluationRecord>& records);
  std::optional<SnapshotInfo> FindSnapshot(int64_t step) const;

  const Options options_;
  const CheckpointDirectory* const directory_;
  const Clock* const clock_;
  std::unique_ptr<EvaluationRecords> records_;
  std::unique_ptr<EventWriter> events_;   // null: not the first evaluator
  std::unique_ptr<Exporters> exporters_;  // null: another evaluator exports
  bool final_taken_ = false;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATION_OUTPUTS_H_
