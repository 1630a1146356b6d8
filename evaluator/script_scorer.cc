#include "evaluator/script_scorer.h"

#include <algorithm>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/job_state.h"
#include "core/model/spec/model_variables.h"
#include "core/model/spec/score_model.h"
#include "core/scoring/evaluation_tally.h"
#include "core/scoring/probabilities.h"
#include "core/scoring/score_sums.h"
#include "core/stored_model/snapshot_rows.h"
#include "evaluator/script_form.h"
#include "evaluator/script_scores.h"
#include "evaluator/snapshot_values.h"

namespace keelson {
namespace {

constexpr size_t kMostTextBytes = 200;

// A line for people, of what may be any bytes.
std::string Printable(absl::string_view text) {
  std::string line(text.substr(0, kMostTextBytes));
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return line;
}

// Of a snapshot; null where the model has no tables.
absl::StatusOr<std::unique_ptr<RowSource>> OpenRows(const v1::TrainConfig& config,
                                                    const std::vector<VariableSpec>& variables,
                                                    const std::vector<TableSpec>& tables,
                                                    const std::string& prefix,
                                                    FileSystem* file_system) {
  if (tables.empty()) return nullptr;
  ModelSpec model;
  model.variables = variables;
  model.tables = tables;
  return SnapshotRows::Open(config, model, prefix, file_system);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptScorer>> ScriptScorer::Create(Options options,
                                                                   ScriptSocket* script,
                                                                   const Clock* clock,
                                                                   const StopSignal* stop) {
  std::unique_ptr<ScriptScorer> scorer(new ScriptScorer(std::move(options), script, clock, stop));
  RETURN_IF_ERROR(scorer->Greet());
  scorer->Lend();
  return scorer;
}

ScriptScorer::~ScriptScorer() {
  if (options_.predictions != nullptr) options_.predictions->Detach();
}

void ScriptScorer::Lend() {
  if (options_.predictions == nullptr || !form_.has_value()) return;
  options_.predictions->Attach(*form_, [this](const ScriptInput& input) { return Predict(input); });
}

absl::Status ScriptScorer::Greet() {
  const absl::Duration until = clock_->Monotonic() + options_.greeting_timeout;
  ASSIGN_OR_RETURN(const ScriptMessage hello, AwaitGreeting(until));
  ScriptMessageReader reader(hello);
  const uint64_t protocol = reader.Number();
  if (hello.kind != ScriptMessageKind::kHello || !reader.ok()) return NotInEvaluation(hello);
  if (protocol != kScriptProtocol) {
    return UnexpectedOfScript(
        "protocol", absl::StrCat(kScriptProtocol, " (use programs and package of one version)"),
        protocol);
  }
  computes_ = Printable(reader.Text());
  ASSIGN_OR_RETURN(ScriptMessage message, AwaitGreeting(until));
  if (message.kind == ScriptMessageKind::kForm) {
    ASSIGN_OR_RETURN(form_, ReadScriptForm(message));
    ASSIGN_OR_RETURN(message, AwaitGreeting(until));
  }
  ASSIGN_OR_RETURN(scoring_, ReadScriptScoring(message));
  if (form_.has_value()) {
    form_->kind = scoring_.kind_name();
    form_->classes = scoring_.class_names;
  }
  ASSIGN_OR_RETURN(ModelVariables model, InferVariables(options_.config.model()));
  variables_ = std::move(model.variables);
  rows_.emplace(std::move(model.tables), script_);
  exchange_.AnswerRowsWith(&*rows_);
  model_ = ScoreModel(scoring_.kind, scoring_.outputs);
  ASSIGN_OR_RETURN(metrics_, InferMetrics(options_.config.evaluation(), model_));
  return ShareMemory();
}

absl::Status ScriptScorer::ShareMemory() {
  const int64_t inputs = form_.has_value() ? InputElements(*form_) : 0;
  ASSIGN_OR_RETURN(memory_, ScoringMemory::Create(variables_, scoring_, inputs));
  return script_->Send(memory_->Description(rows_->tables()), memory_->fd());
}

absl::StatusOr<ScriptMessage> ScriptScorer::AwaitGreeting(absl::Duration until) {
  absl::StatusOr<ScriptMessage> message = exchange_.Await(until);
  if (!absl::IsDeadlineExceeded(message.status())) return message;
  return absl::DeadlineExceededError("the script has not said what it scores");
}

int64_t ScriptScorer::num_records() const {
  return scoring_.RecordsOf(options_.config.evaluation().steps());
}

absl::StatusOr<ScoredSnapshot> ScriptScorer::Score(const SnapshotInfo& snapshot,
                                                   SnapshotLease* lease,
                                                   const VariableCallback& on_variable) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(snapshot.prefix, options_.file_system));
  ASSIGN_OR_RETURN(const uint64_t snapshot_id, ReadSnapshotId(*bundle));
  RETURN_IF_ERROR(CheckVariables(*bundle, variables_));
  RETURN_IF_ERROR(Load(*bundle, snapshot.step, lease, on_variable));
  EvaluationTally tally(&model_, &metrics_, scoring_.class_names);
  const int64_t end = num_records();
  for (int64_t first = 0; first < end; first += scoring_.batch_size) {
    RETURN_IF_ERROR(ScoreBatch(snapshot.step, first, std::min(scoring_.batch_size, end - first)));
    const EvaluationSums sums =
        SumsOfScores(model_.main_loss(), metrics_, scores_, batch_.labels[0].span());
    tally.Add(first, batch_, sums, absl::MakeSpan(scores_));
  }
  EvaluationOutcome outcome = tally.Finish();
  return MakeScoredSnapshot(std::move(outcome), snapshot.step, snapshot_id, clock_->Now(),
                            clock_->Monotonic() - start);
}

absl::Status ScriptScorer::Load(const BundleReader& bundle, int64_t step, SnapshotLease* lease,
                                const VariableCallback& on_variable) {
  RETURN_IF_ERROR(exchange_.TakeTurn(absl::InfiniteDuration()));
  const absl::Cleanup give = [this] { exchange_.GiveTurn(); };
  return ReadValues(bundle, step, lease, on_variable);
}

absl::Status ScriptScorer::ReadValues(const BundleReader& bundle, int64_t step,
                                      SnapshotLease* lease, const VariableCallback& on_variable) {
  loaded_step_ = std::nullopt;
  ASSIGN_OR_RETURN(std::unique_ptr<RowSource> rows,
                   OpenRows(options_.config, variables_, rows_->tables(), bundle.prefix(),
                            options_.file_system));
  RETURN_IF_ERROR(ReadVariables(
      bundle, variables_, lease, clock_, [&](size_t v, absl::Span<const float> values) {
        if (on_variable != nullptr) on_variable(variables_[v], values);
        std::copy(values.begin(), values.end(), memory_->values(v).begin());
        return absl::OkStatus();
      }));
  rows_->SetSource(std::move(rows));
  loaded_step_ = step;
  return absl::OkStatus();
}

absl::Status ScriptScorer::LoadNewest() {
  if (loaded_step_.has_value()) return absl::OkStatus();
  const CheckpointDirectory directory(options_.file_system,
                                      options_.config.checkpoint().model_dir(), clock_);
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory.List());
  if (snapshots.empty()) return absl::NotFoundError("there is no snapshot yet that can be read");
  const SnapshotInfo& newest = snapshots.back();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(newest.prefix, options_.file_system));
  RETURN_IF_ERROR(CheckVariables(*bundle, variables_));
  return ReadValues(*bundle, newest.step, nullptr, nullptr);
}

absl::StatusOr<ScriptPrediction> ScriptScorer::Predict(const ScriptInput& input) {
  const absl::Duration until = clock_->Monotonic() + options_.prediction_timeout;
  RETURN_IF_ERROR(exchange_.TakeTurn(until));
  const absl::Cleanup give = [this] { exchange_.GiveTurn(); };
  RETURN_IF_ERROR(LoadNewest());
  const absl::Duration start = clock_->Monotonic();
  std::copy(input.numbers.begin(), input.numbers.end(), memory_->inputs().begin());
  const uint64_t number = ++predictions_;
  const ScriptMessage request = ScriptMessageWriter(ScriptMessageKind::kPredict)
                                    .Number(*loaded_step_)
                                    .Number(number)
                                    .Number(memory_->inputs_at())
                                    .Text(input.columns)
                                    .message();
  ASSIGN_OR_RETURN(const ScriptMessage answer, exchange_.Predict(number, request, until));
  RETURN_IF_ERROR(rows_->TakeTrouble());
  if (answer.kind == ScriptMessageKind::kNotPredicted) {
    return absl::UnavailableError(absl::StrCat("the script: ", Printable(answer.body)));
  }
  ScriptPrediction prediction;
  prediction.step = *loaded_step_;
  const absl::Span<const float> scores = memory_->scores(/*records=*/1);
  prediction.outputs.assign(scores.begin(), scores.end());
  RETURN_IF_ERROR(ToLogits(absl::MakeSpan(prediction.outputs)));
  ScoresToProbabilities(scoring_.kind, scoring_.outputs, absl::MakeSpan(prediction.outputs));
  prediction.seconds = absl::ToDoubleSeconds(clock_->Monotonic() - start);
  return prediction;
}

absl::Status ScriptScorer::ScoreBatch(int64_t step, int64_t first, int64_t count) {
  RETURN_IF_ERROR(exchange_.TakeTurn(absl::InfiniteDuration()));
  const absl::Cleanup give = [this] { exchange_.GiveTurn(); };
  RETURN_IF_ERROR(script_->Send(ScriptMessageWriter(ScriptMessageKind::kScore)
                                    .Number(step)
                                    .Number(first)
                                    .Number(count)
                                    .message()));
  ASSIGN_OR_RETURN(const ScriptMessage message, exchange_.Await(absl::InfiniteDuration()));
  ScriptMessageReader reader(message);
  const uint64_t answered = reader.Number();
  if (message.kind != ScriptMessageKind::kScores || !reader.AtEnd())
    return NotInEvaluation(message);
  if (answered != static_cast<uint64_t>(first)) {
    return UnexpectedOfScript("scores", absl::StrCat("those of the records from ", first, " on"),
                              answered);
  }
  RETURN_IF_ERROR(rows_->TakeTrouble());
  RETURN_IF_ERROR(TakeLabels(first, memory_->labels(count)));
  const absl::Span<const float> scores = memory_->scores(count);
  scores_.assign(scores.begin(), scores.end());
  return ToLogits(absl::MakeSpan(scores_));
}

absl::Status ScriptScorer::ToLogits(absl::Span<float> scores) const {
  if (!scoring_.probabilities || IsRegression(scoring_.kind)) return absl::OkStatus();
  return ProbabilitiesToLogits(scoring_.outputs, scores);
}

absl::Status ScriptScorer::TakeLabels(int64_t first, absl::Span<const float> labels) {
  RETURN_IF_ERROR(CheckLabels(model_.main_loss().num_classes(), first, labels));
  batch_.labels.resize(1);
  Resize(static_cast<int64_t>(labels.size()), Shape(), &batch_.labels[0]);
  std::copy(labels.begin(), labels.end(), batch_.labels[0].data());
  return absl::OkStatus();
}

}  // namespace keelson
