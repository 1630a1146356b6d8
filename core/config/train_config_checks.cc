#include "core/config/train_config_checks.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cluster/consistency.h"
#include "core/cluster/transfer_formats.h"
#include "core/model/model_spec.h"

namespace keelson {
namespace {

template <typename T>
absl::Status FieldError(absl::string_view field, absl::string_view expected, const T& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", found ", found));
}

absl::Status NotWithLoss(absl::string_view field, absl::string_view expected, LossKind found) {
  return FieldError(field, absl::StrCat("a model with the loss ", expected), LossKindName(found));
}

// Fractions are checked as doubles; not-a-number is in no range.
template <typename T>
absl::Status Positive(absl::string_view field, T value) {
  if (value > 0 && std::isfinite(static_cast<double>(value))) return absl::OkStatus();
  return FieldError(field, "> 0", value);
}

template <typename T>
absl::Status NotNegative(absl::string_view field, T value) {
  if (value >= 0 && std::isfinite(static_cast<double>(value))) return absl::OkStatus();
  return FieldError(field, ">= 0", value);
}

absl::Status Fraction(absl::string_view field, double value) {
  return value >= 0 && value < 1 ? absl::OkStatus() : FieldError(field, "in [0, 1)", value);
}

absl::Status CheckMomentum(const v1::OptimizerConfig::Momentum& momentum) {
  return Fraction("optimizer.momentum.momentum", momentum.momentum());
}

absl::Status CheckAdagrad(const v1::OptimizerConfig::Adagrad& adagrad) {
  RETURN_IF_ERROR(
      NotNegative("optimizer.adagrad.initial_accumulator", adagrad.initial_accumulator()));
  return Positive("optimizer.adagrad.epsilon", adagrad.epsilon());
}

absl::Status CheckRmsProp(const v1::OptimizerConfig::RmsProp& rmsprop) {
  RETURN_IF_ERROR(Fraction("optimizer.rmsprop.decay", rmsprop.decay()));
  RETURN_IF_ERROR(Fraction("optimizer.rmsprop.momentum", rmsprop.momentum()));
  return Positive("optimizer.rmsprop.epsilon", rmsprop.epsilon());
}

template <typename AdamOrAdamW>
absl::Status CheckAdam(const std::string& path, const AdamOrAdamW& adam) {
  RETURN_IF_ERROR(Fraction(path + ".beta1", adam.beta1()));
  RETURN_IF_ERROR(Fraction(path + ".beta2", adam.beta2()));
  return Positive(path + ".epsilon", adam.epsilon());
}

absl::Status CheckOptimizerKind(const v1::OptimizerConfig& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::OptimizerConfig::kSgd:
      return absl::OkStatus();
    case v1::OptimizerConfig::kMomentum:
      return CheckMomentum(optimizer.momentum());
    case v1::OptimizerConfig::kAdagrad:
      return CheckAdagrad(optimizer.adagrad());
    case v1::OptimizerConfig::kRmsprop:
      return CheckRmsProp(optimizer.rmsprop());
    case v1::OptimizerConfig::kAdam:
      return CheckAdam("optimizer.adam", optimizer.adam());
    case v1::OptimizerConfig::kAdamw:
      RETURN_IF_ERROR(CheckAdam("optimizer.adamw", optimizer.adamw()));
      return NotNegative("optimizer.adamw.weight_decay", optimizer.adamw().weight_decay());
    case v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  return FieldError("optimizer", "one of sgd, momentum, adagrad, rmsprop, adam and adamw", "none");
}

absl::Status CheckOptimizer(const v1::OptimizerConfig& optimizer) {
  RETURN_IF_ERROR(CheckOptimizerKind(optimizer));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_global_norm", optimizer.clip_global_norm()));
  RETURN_IF_ERROR(NotNegative("optimizer.clip_value", optimizer.clip_value()));
  return NotNegative("optimizer.l2", optimizer.l2());
}

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

absl::Status CheckSubset(const std::string& path, const v1::DataConfig::Subset& subset) {
  RETURN_IF_ERROR(NotNegative(path + ".begin", subset.begin()));
  if (subset.end() == 0 || subset.end() > subset.begin()) return absl::OkStatus();
  return FieldError(path + ".end", absl::StrCat("0 (all) or > ", subset.begin(), " (its begin)"),
                    subset.end());
}

absl::Status CheckData(const v1::DataConfig& data) {
  RETURN_IF_ERROR(Positive("data.generated.train_records", data.generated().train_records()));
  RETURN_IF_ERROR(Positive("data.generated.eval_records", data.generated().eval_records()));
  RETURN_IF_ERROR(CheckSubset("data.train_subset", data.train_subset()));
  return CheckSubset("data.eval_subset", data.eval_subset());
}

absl::Status CheckTraining(const v1::TrainingConfig& train) {
  RETURN_IF_ERROR(Positive("train.batch_size", train.batch_size()));
  RETURN_IF_ERROR(NotNegative("train.max_steps", train.max_steps()));
  RETURN_IF_ERROR(NotNegative("train.epochs", train.epochs()));
  if ((train.max_steps() > 0) == (train.epochs() > 0)) {
    return FieldError("train", "exactly one of max_steps and epochs",
                      train.epochs() > 0 ? "both" : "neither");
  }
  return Positive("train.summary_steps", train.summary_steps());
}

absl::Status CheckCheckpoint(const v1::CheckpointConfig& checkpoint) {
  RETURN_IF_ERROR(NotNegative("checkpoint.save_seconds", checkpoint.save_seconds()));
  RETURN_IF_ERROR(NotNegative("checkpoint.save_steps", checkpoint.save_steps()));
  if (checkpoint.save_seconds() > 0 && checkpoint.save_steps() > 0) {
    return FieldError("checkpoint", "at most one of save_seconds and save_steps", "both");
  }
  RETURN_IF_ERROR(NotNegative("checkpoint.keep_max", checkpoint.keep_max()));
  return NotNegative("checkpoint.keep_every_n_hours", checkpoint.keep_every_n_hours());
}

absl::Status CheckTopK(const std::string& path, const v1::EvaluationConfig::TopK& top_k,
                       const ModelSpec& model) {
  if (model.loss != LossKind::kSoftmaxCrossEntropy) {
    return NotWithLoss(path, "SOFTMAX_CROSS_ENTROPY", model.loss);
  }
  if (top_k.k() >= 1 && top_k.k() <= model.output_size) return absl::OkStatus();
  return FieldError(path + ".k", absl::StrCat("1..", model.output_size, " (the classes)"),
                    top_k.k());
}

absl::Status CheckMetric(const std::string& path, const v1::EvaluationConfig::Metric& metric,
                         const ModelSpec& model) {
  switch (metric.kind_case()) {
    case v1::EvaluationConfig::Metric::kAccuracy:
      if (model.loss != LossKind::kMeanSquaredError) return absl::OkStatus();
      return NotWithLoss(path + ".accuracy", "SOFTMAX_CROSS_ENTROPY or SIGMOID_CROSS_ENTROPY",
                         model.loss);
    case v1::EvaluationConfig::Metric::kTopK:
      return CheckTopK(path + ".top_k", metric.top_k(), model);
    case v1::EvaluationConfig::Metric::KIND_NOT_SET:
      break;
  }
  return FieldError(path, "accuracy or top_k", "none");
}

absl::Status CheckEvaluation(const v1::EvaluationConfig& evaluation, const ModelSpec& model) {
  RETURN_IF_ERROR(Positive("evaluation.batch_size", evaluation.batch_size()));
  RETURN_IF_ERROR(
      NotNegative("evaluation.final_timeout_seconds", evaluation.final_timeout_seconds()));
  for (int i = 0; i < evaluation.metrics_size(); ++i) {
    RETURN_IF_ERROR(
        CheckMetric(absl::StrCat("evaluation.metrics[", i, "]"), evaluation.metrics(i), model));
  }
  return absl::OkStatus();
}

absl::Status CheckDelayCompensation(const v1::StaleGradientConfig::DelayCompensation& delay) {
  const std::string path = "consistency.stale_gradients.delay_compensation";
  RETURN_IF_ERROR(NotNegative(path + ".lambda", delay.lambda()));
  RETURN_IF_ERROR(Fraction(path + ".decay", delay.decay()));
  return Positive(path + ".epsilon", delay.epsilon());
}

absl::Status CheckConsistency(const v1::ConsistencyConfig& consistency) {
  RETURN_IF_ERROR(ConsistencyMode::FromProto(consistency.mode(), "consistency.mode").status());
  const v1::StaleGradientConfig& stale = consistency.stale_gradients();
  if (!stale.has_delay_compensation()) return absl::OkStatus();
  return CheckDelayCompensation(stale.delay_compensation());
}

}  // namespace

absl::Status CheckTrainConfig(const v1::TrainConfig& config) {
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config.model()));
  RETURN_IF_ERROR(CheckOptimizer(config.optimizer()));
  RETURN_IF_ERROR(CheckLearningRate(config.learning_rate()));
  RETURN_IF_ERROR(CheckData(config.data()));
  RETURN_IF_ERROR(CheckTraining(config.train()));
  RETURN_IF_ERROR(CheckCheckpoint(config.checkpoint()));
  RETURN_IF_ERROR(CheckEvaluation(config.evaluation(), model));
  RETURN_IF_ERROR(ValidateTransferConfig(config.transfer()));
  RETURN_IF_ERROR(CheckTransferGroups(config.transfer(), model.variables));
  return CheckConsistency(config.consistency());
}

}  // namespace keelson
