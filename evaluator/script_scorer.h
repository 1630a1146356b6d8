// Scores snapshots with a script: it computes the scores of the records, and the evaluator adds
// them up (docs/agent-protocol.md).
#ifndef KEELSON_EVALUATOR_SCRIPT_SCORER_H_
#define KEELSON_EVALUATOR_SCRIPT_SCORER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/model_spec.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "core/tensor/variable.h"
#include "dashboard/runs/script_model.h"
#include "evaluator/scorer.h"
#include "evaluator/scoring_memory.h"
#include "evaluator/script_exchange.h"
#include "evaluator/script_predictions.h"
#include "evaluator/script_row_answers.h"
#include "evaluator/script_scoring.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The snapshot's values, and the scores and labels of a batch, lie in memory that both share; rows
// of tables in memory that the script asks for.
class ScriptScorer : public Scorer {
 public:
  struct Options {
    v1::TrainConfig config;  // final
    // How long a new script may take to say what it scores.
    absl::Duration greeting_timeout = absl::Seconds(60);
    // How long a prediction may take, with the wait for its turn.
    absl::Duration prediction_timeout = absl::Seconds(10);
    FileSystem* file_system = FileSystem::Real();
    // Is lent the script where that predicts; may be null. Outlives the scorer.
    ScriptPredictions* predictions = nullptr;
  };

  // Greets the script. All outlive the scorer. INVALID_ARGUMENT: another protocol, a message that
  // the protocol does not have, scores of no kind or number that there can be, or metrics that they
  // do not have. DEADLINE_EXCEEDED: the script says nothing. CANCELLED: it has
  // ended, or `stop` was raised. RESOURCE_EXHAUSTED: no memory to share.
  static absl::StatusOr<std::unique_ptr<ScriptScorer>> Create(Options options, ScriptSocket* script,
                                                              const Clock* clock,
                                                              const StopSignal* stop);
  ~ScriptScorer() override;

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  std::string computes() const override { return computes_; }
  // Those of the first evaluation.steps batches, or all.
  int64_t num_records() const override;
  // Other errors: INVALID_ARGUMENT: labels that are none; of SnapshotRows; otherwise those of the
  // script's socket.
  absl::StatusOr<ScoredSnapshot> Score(const SnapshotInfo& snapshot, SnapshotLease* lease,
                                       const VariableCallback& on_variable) override;

  // By the script, with the values of the snapshot that was scored last or is being scored; of the
  // newest one where there is none yet. Between two batches, called by any thread. Errors of
  // ScriptModel::Predict and of reading a snapshot. INVALID_ARGUMENT: no probability.
  absl::StatusOr<ScriptPrediction> Predict(const ScriptInput& input);

 private:
  ScriptScorer(Options options, ScriptSocket* script, const Clock* clock, const StopSignal* stop)
      : options_(std::move(options)),
        script_(script),
        clock_(clock),
        exchange_(script, clock, stop) {}

  absl::Status Greet();
  absl::StatusOr<ScriptMessage> AwaitGreeting(absl::Duration until);
  // Lends the script to the dashboard, if it predicts.
  void Lend();
  absl::Status ShareMemory();
  // Reads the snapshot's values into the memory, and opens its rows. Takes the turn.
  absl::Status Load(const BundleReader& bundle, int64_t step, SnapshotLease* lease,
                    const VariableCallback& on_variable);
  // Those of the newest snapshot, unless some are there. Of who has the turn.
  absl::Status LoadNewest();
  absl::Status ReadValues(const BundleReader& bundle, int64_t step, SnapshotLease* lease,
                          const VariableCallback& on_variable);
  // Has the script score the records from `first` on into `scores_` and `batch_`.
  absl::Status ScoreBatch(int64_t step, int64_t first, int64_t count);
  // In place, where the script gives probabilities.
  absl::Status ToLogits(absl::Span<float> scores) const;
  absl::Status TakeLabels(int64_t first, absl::Span<const float> labels);

  const Options options_;
  ScriptSocket* const script_;
  const Clock* const clock_;
  ScriptExchange exchange_;
  std::string computes_;
  std::vector<VariableSpec> variables_;
  ScriptScoring scoring_;
  ModelSpec model_;
  std::vector<MetricSpec> metrics_;
  std::optional<ScriptForm> form_;  // nullopt: it predicts nothing
  std::optional<ScriptRowAnswers> rows_;
  std::unique_ptr<ScoringMemory> memory_;
  // Of who has the turn: the step whose values and rows are in the memory, and the predictions so
  // far.
  std::optional<int64_t> loaded_step_;
  uint64_t predictions_ = 0;
  // Reused.
  std::vector<float> scores_;  // logits
  Batch batch_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_SCORER_H_
