#include "core/config/train_config_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/cluster/consistency.h"
#include "core/cluster/transfer_formats.h"
#include "core/config/data_checks.h"
#include "core/config/field_checks.h"
#include "core/config/initial_values.h"
#include "core/config/optimizer_checks.h"
#include "core/config/placement_checks.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/model_variables.h"
#include "core/model/spec/score_model.h"

namespace keelson {
namespace {

absl::Status CheckStepSchedule(const v1::LearningRateConfig::Step& step) {
  if (step.boundaries().empty()) {
    return FieldError("learning_rate.step.boundaries", "at least one step", "none");
  }
  int64_t previous = 0;
  for (int i = 0; i < step.boundaries_size(); ++i) {
    if (step.boundaries(i) <= previous) {
      return FieldError(absl::StrCat("learning_rate.step.boundaries[", i, "]"),
                        absl::StrCat("> ", previous), step.boundaries(i));
    }
    previous = step.boundaries(i);
  }
  return Positive("learning_rate.step.factor", step.factor());
}

absl::Status CheckExponentialSchedule(const v1::LearningRateConfig::Exponential& exponential) {
  RETURN_IF_ERROR(Positive("learning_rate.exponential.rate", exponential.rate()));
  return Positive("learning_rate.exponential.decay_steps", exponential.decay_steps());
}

absl::Status CheckCosineSchedule(const v1::LearningRateConfig::Cosine& cosine) {
  RETURN_IF_ERROR(NotNegative("learning_rate.cosine.decay_steps", cosine.decay_steps()));
  if (cosine.alpha() >= 0 && cosine.alpha() <= 1) return absl::OkStatus();
  return FieldError("learning_rate.cosine.alpha", "in [0, 1]", cosine.alpha());
}

absl::Status CheckLearningRate(const v1::LearningRateConfig& learning_rate) {
  RETURN_IF_ERROR(Positive("learning_rate.base", learning_rate.base()));
  RETURN_IF_ERROR(NotNegative("learning_rate.warmup_steps", learning_rate.warmup_steps()));
  if (learning_rate.has_step()) return CheckStepSchedule(learning_rate.step());
  if (learning_rate.has_exponential()) return CheckExponentialSchedule(learning_rate.exponential());
  if (learning_rate.has_cosine()) return CheckCosineSchedule(learning_rate.cosine());
  return absl::OkStatus();
}

absl::Status CheckLength(const v1::TrainingConfig& train, bool stream) {
  if (stream) {
    if (train.epochs() == 0) return absl::OkStatus();
    return FieldError("train.epochs", "0, as data.stream is visited once", train.epochs());
  }
  if ((train.max_steps() > 0) != (train.epochs() > 0)) return absl::OkStatus();
  return FieldError("train", "exactly one of max_steps and epochs",
                    train.epochs() > 0 ? "both" : "neither");
}

absl::Status CheckTraining(const v1::TrainingConfig& train, bool stream) {
  RETURN_IF_ERROR(Positive("train.batch_size", train.batch_size()));
  RETURN_IF_ERROR(NotNegative("train.max_steps", train.max_steps()));
  RETURN_IF_ERROR(NotNegative("train.epochs", train.epochs()));
  RETURN_IF_ERROR(CheckLength(train, stream));
  RETURN_IF_ERROR(Positive("train.summary_steps", train.summary_steps()));
  RETURN_IF_ERROR(NotNegative("train.histogram_steps", train.histogram_steps()));
  return NotNegative("train.max_loss", train.max_loss());
}

absl::Status CheckCheckpoint(const v1::CheckpointConfig& checkpoint, bool tables) {
  constexpr int64_t kMostFullEvery = 100;
  RETURN_IF_ERROR(NotNegative("checkpoint.save_seconds", checkpoint.save_seconds()));
  RETURN_IF_ERROR(NotNegative("checkpoint.save_steps", checkpoint.save_steps()));
  if (checkpoint.save_seconds() > 0 && checkpoint.save_steps() > 0) {
    return FieldError("checkpoint", "at most one of save_seconds and save_steps", "both");
  }
  RETURN_IF_ERROR(NotNegative("checkpoint.keep_max", checkpoint.keep_max()));
  RETURN_IF_ERROR(NotNegative("checkpoint.keep_every_n_hours", checkpoint.keep_every_n_hours()));
  RETURN_IF_ERROR(NotNegative("checkpoint.full_every", checkpoint.full_every()));
  if (checkpoint.full_every() > kMostFullEvery) {
    return FieldError("checkpoint.full_every", absl::StrCat("<= ", kMostFullEvery),
                      checkpoint.full_every());
  }
  if (checkpoint.full_every() > 1 && !tables) {
    return FieldError("checkpoint.full_every", "at most 1 without model.tables",
                      checkpoint.full_every());
  }
  return absl::OkStatus();
}

// "loss", the losses' and the metrics' own.
absl::StatusOr<std::vector<std::string>> MetricNames(const v1::EvaluationConfig& evaluation,
                                                     const ModelSpec& model) {
  std::vector<std::string> names = {"loss"};
  if (model.losses.size() > 1) {
    for (const LossSpec& loss : model.losses) names.push_back(LossMetricName(loss));
  }
  ASSIGN_OR_RETURN(const std::vector<MetricSpec> metrics, InferMetrics(evaluation, model));
  for (const MetricSpec& metric : metrics) names.push_back(metric.name());
  return names;
}

absl::Status CheckMetricName(const std::string& field, const std::string& name,
                             const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("one of \"", absl::StrJoin(names, "\", \""), "\" (the metrics)"),
                    absl::StrCat("\"", name, "\""));
}

absl::Status CheckEarlyStopping(const v1::EvaluationConfig::EarlyStopping& stopping,
                                const std::vector<std::string>& metrics) {
  const std::string path = "evaluation.early_stopping";
  RETURN_IF_ERROR(Positive(path + ".patience", stopping.patience()));
  RETURN_IF_ERROR(NotNegative(path + ".min_delta", stopping.min_delta()));
  RETURN_IF_ERROR(NotNegative(path + ".min_steps", stopping.min_steps()));
  return CheckMetricName(path + ".metric", stopping.metric(), metrics);
}

absl::Status CheckExporter(const std::string& path, const v1::EvaluationConfig::Exporter& exporter,
                           const std::vector<std::string>& metrics) {
  switch (exporter.kind_case()) {
    case v1::EvaluationConfig::Exporter::kFinalSnapshot:
      return absl::OkStatus();
    case v1::EvaluationConfig::Exporter::kLatest:
      return Positive(path + ".latest.keep", exporter.latest().keep());
    case v1::EvaluationConfig::Exporter::kBest:
      RETURN_IF_ERROR(Positive(path + ".best.keep", exporter.best().keep()));
      return CheckMetricName(path + ".best.metric", exporter.best().metric(), metrics);
    case v1::EvaluationConfig::Exporter::KIND_NOT_SET:
      break;
  }
  return FieldError(path, "one of final_snapshot, latest and best", "none");
}

absl::Status CheckExporters(const v1::EvaluationConfig& evaluation,
                            const std::vector<std::string>& metrics) {
  std::set<v1::EvaluationConfig::Exporter::KindCase> kinds;
  for (int i = 0; i < evaluation.exporters_size(); ++i) {
    const std::string path = absl::StrCat("evaluation.exporters[", i, "]");
    RETURN_IF_ERROR(CheckExporter(path, evaluation.exporters(i), metrics));
    if (kinds.insert(evaluation.exporters(i).kind_case()).second) continue;
    return FieldError(path, "at most one exporter of each kind", "another one of its kind");
  }
  return absl::OkStatus();
}

absl::Status CheckEvaluation(const v1::EvaluationConfig& evaluation, const ModelSpec& model) {
  RETURN_IF_ERROR(Positive("evaluation.batch_size", evaluation.batch_size()));
  RETURN_IF_ERROR(
      NotNegative("evaluation.final_timeout_seconds", evaluation.final_timeout_seconds()));
  RETURN_IF_ERROR(NotNegative("evaluation.steps", evaluation.steps()));
  RETURN_IF_ERROR(NotNegative("evaluation.start_delay_seconds", evaluation.start_delay_seconds()));
  RETURN_IF_ERROR(NotNegative("evaluation.throttle_seconds", evaluation.throttle_seconds()));
  ASSIGN_OR_RETURN(const std::vector<std::string> metrics, MetricNames(evaluation, model));
  if (evaluation.has_early_stopping()) {
    RETURN_IF_ERROR(CheckEarlyStopping(evaluation.early_stopping(), metrics));
  }
  return CheckExporters(evaluation, metrics);
}

// A metric of scores whose kind a script says later must make sense for one of the kinds.
absl::Status CheckScriptsEvaluation(const v1::EvaluationConfig& evaluation) {
  constexpr int64_t kAnyClasses = int64_t{1} << 20;
  absl::Status status =
      CheckEvaluation(evaluation, ScoreModel(LossKind::kSoftmaxCrossEntropy, kAnyClasses));
  for (const LossKind kind : {LossKind::kSigmoidCrossEntropy, LossKind::kMeanSquaredError}) {
    if (status.ok() || CheckEvaluation(evaluation, ScoreModel(kind, 1)).ok())
      return absl::OkStatus();
  }
  return status;
}

absl::Status CheckDelayCompensation(const v1::StaleGradientConfig::DelayCompensation& delay) {
  const std::string path = "consistency.stale_gradients.delay_compensation";
  RETURN_IF_ERROR(NotNegative(path + ".lambda", delay.lambda()));
  RETURN_IF_ERROR(Fraction(path + ".decay", delay.decay()));
  return Positive(path + ".epsilon", delay.epsilon());
}

// The cluster may decide the mode (CheckFitsCluster).
absl::Status CheckDeterministicSum(const v1::ConsistencyConfig& consistency, bool stream) {
  if (!consistency.deterministic_sum()) return absl::OkStatus();
  const v1::ConsistencyMode& mode = consistency.mode();
  const bool set = mode.mode_case() != v1::ConsistencyMode::MODE_NOT_SET;
  if (stream || (set && !mode.has_synchronous())) {
    return FieldError("consistency.deterministic_sum",
                      "false without synchronous steps, whose gradients are added up", "true");
  }
  if (mode.synchronous().total_replicas() > mode.synchronous().replicas_to_aggregate()) {
    return FieldError("consistency.deterministic_sum",
                      "false with more total_replicas than replicas_to_aggregate, of which those "
                      "that come first count",
                      "true");
  }
  return absl::OkStatus();
}

absl::Status CheckConsistency(const v1::ConsistencyConfig& consistency, bool uses_ftrl,
                              bool has_tables, bool stream) {
  RETURN_IF_ERROR(ConsistencyMode::FromProto(consistency.mode(), "consistency.mode").status());
  if (stream && consistency.mode().has_synchronous()) {
    return FieldError("consistency.mode",
                      "async or bounded_staleness with data.stream, of which nobody knows whether "
                      "there are enough records for all workers of a step",
                      "synchronous");
  }
  RETURN_IF_ERROR(CheckDeterministicSum(consistency, stream));
  const v1::StaleGradientConfig& stale = consistency.stale_gradients();
  if (stale.scale_learning_rate() && uses_ftrl) {
    return FieldError("consistency.stale_gradients.scale_learning_rate",
                      "false with ftrl, whose rate scales the values", "true");
  }
  if (!stale.has_delay_compensation()) return absl::OkStatus();
  if (has_tables) {
    return FieldError("consistency.stale_gradients.delay_compensation",
                      "none of a model with tables, whose rows have no earlier values", "some");
  }
  return CheckDelayCompensation(stale.delay_compensation());
}

// What the worker of a model of layers does, and the agent of a script does not.
absl::Status CheckLeftToScript(const v1::TrainConfig& config) {
  if (config.optimizer().clip_global_norm() != 0) {
    return FieldError("optimizer.clip_global_norm", "0 with model.external, whose script clips",
                      config.optimizer().clip_global_norm());
  }
  if (config.train().histogram_steps() != 0) {
    return FieldError("train.histogram_steps", "0 with model.external",
                      config.train().histogram_steps());
  }
  if (config.transfer().depth() != 1) {
    return FieldError("transfer.depth", "1 with model.external", config.transfer().depth());
  }
  return CheckScriptsEvaluation(config.evaluation());
}

// What does not depend on the model but for its variables and tables.
absl::Status CheckRest(const v1::TrainConfig& config, const ModelVariables& model) {
  RETURN_IF_ERROR(CheckOptimizer(config.optimizer(), {model.variables, model.tables}));
  RETURN_IF_ERROR(
      WithInitialValues(config.initial_values(), model.variables, model.tables).status());
  RETURN_IF_ERROR(CheckLearningRate(config.learning_rate()));
  RETURN_IF_ERROR(CheckTraining(config.train(), config.data().has_stream()));
  RETURN_IF_ERROR(CheckCheckpoint(config.checkpoint(), !config.model().tables().empty()));
  RETURN_IF_ERROR(ValidateTransferConfig(config.transfer()));
  RETURN_IF_ERROR(CheckTransferGroups(config.transfer(), model.variables, model.tables));
  RETURN_IF_ERROR(CheckPlacement(config.placement(), model));
  RETURN_IF_ERROR(NotNegative("collective.min_workers", config.collective().min_workers()));
  return CheckConsistency(config.consistency(), UsesFtrl(config.optimizer()), !model.tables.empty(),
                          config.data().has_stream());
}

}  // namespace

absl::Status CheckTrainConfig(const v1::TrainConfig& config) {
  if (config.model().has_external()) {
    ASSIGN_OR_RETURN(const ModelVariables variables, InferVariables(config.model()));
    RETURN_IF_ERROR(CheckRest(config, variables));
    RETURN_IF_ERROR(CheckExternalData(config.data()));
    return CheckLeftToScript(config);
  }
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config.model()));
  RETURN_IF_ERROR(CheckRest(config, {model.variables, model.tables}));
  RETURN_IF_ERROR(CheckDataConfig(config.data(), model));
  return CheckEvaluation(config.evaluation(), model);
}

}  // namespace keelson
