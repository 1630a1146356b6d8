#include "core/model/spec/loss_spec.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/record_schema.h"

namespace keelson {
namespace {

absl::StatusOr<LossKind> ReadKind(v1::LossConfig::Kind kind, const std::string& path) {
  switch (kind) {
    case v1::LossConfig::SOFTMAX_CROSS_ENTROPY:
      return LossKind::kSoftmaxCrossEntropy;
    case v1::LossConfig::SIGMOID_CROSS_ENTROPY:
      return LossKind::kSigmoidCrossEntropy;
    case v1::LossConfig::MEAN_SQUARED_ERROR:
      return LossKind::kMeanSquaredError;
    case v1::LossConfig::HUBER:
      return LossKind::kHuber;
    case v1::LossConfig::IN_BATCH_SOFTMAX:
      return LossKind::kInBatchSoftmax;
    default:
      return FieldError(path + ".kind",
                        "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, "
                        "MEAN_SQUARED_ERROR, HUBER or IN_BATCH_SOFTMAX, found none");
  }
}

absl::Status CheckPairs(const std::string& path, const std::vector<LossInput>& inputs) {
  const LossInput& queries = inputs[0];
  const LossInput& items = inputs[1];
  if (queries.value == items.value) {
    return FieldError(path + ".items", absl::StrCat("expected another layer than the queries', "
                                                    "found \"",
                                                    items.layer, "\""));
  }
  if (queries.shape.rank() == 1 && items.shape == queries.shape) return absl::OkStatus();
  return FieldError(path,
                    absl::StrCat("IN_BATCH_SOFTMAX takes queries and items [dim] of one size, "
                                 "found the outputs ",
                                 queries.shape.ToString(), " of \"", queries.layer, "\" and ",
                                 items.shape.ToString(), " of \"", items.layer, "\""));
}

absl::Status CheckScores(LossKind kind, const std::string& path, const LossInput& scores) {
  const bool softmax = kind == LossKind::kSoftmaxCrossEntropy;
  const int64_t outputs = scores.shape.num_elements();
  if (scores.shape.rank() == 1 && (softmax ? outputs >= 2 : outputs == 1)) return absl::OkStatus();
  return FieldError(
      path,
      absl::StrCat(LossKindName(kind), " takes ", softmax ? "[classes], 2 or more" : "[1]",
                   ", found the output ", scores.shape.ToString(), " of \"", scores.layer, "\""));
}

absl::Status ReadInputs(const std::string& path, const std::vector<LossInput>& inputs,
                        LossSpec* loss) {
  const bool pairs = loss->kind == LossKind::kInBatchSoftmax;
  RETURN_IF_ERROR(pairs ? CheckPairs(path, inputs) : CheckScores(loss->kind, path, inputs.front()));
  for (const LossInput& input : inputs) loss->inputs.push_back(input.value);
  const int64_t floats = inputs.front().shape.num_elements();
  loss->outputs = pairs ? 1 : floats;
  if (pairs) loss->dim = floats;
  return absl::OkStatus();
}

// A field that is `found`, of losses of the kind `of` alone.
absl::Status CheckKindOfField(const LossSpec& loss, LossKind of, const std::string& path, bool set,
                              const std::string& found) {
  if (!set || loss.kind == of) return absl::OkStatus();
  return FieldError(path,
                    absl::StrCat("expected none of ", LossKindName(loss.kind), ", found ", found));
}

absl::Status ReadDelta(const v1::LossConfig& config, const std::string& path, LossSpec* loss) {
  RETURN_IF_ERROR(CheckKindOfField(*loss, LossKind::kHuber, path + ".delta", config.has_delta(),
                                   absl::StrCat(config.delta())));
  if (config.has_delta()) loss->delta = config.delta();
  return CheckPositiveNumber(path + ".delta", loss->delta);
}

absl::Status ReadFieldsOfPairs(const v1::LossConfig& config, const std::string& path,
                               LossSpec* loss) {
  const auto check = [&](const char* field, bool set, const std::string& found) {
    return CheckKindOfField(*loss, LossKind::kInBatchSoftmax, absl::StrCat(path, field), set,
                            found);
  };
  const auto check_name = [&](const char* field, const std::string& name) {
    return check(field, !name.empty(), absl::StrCat("\"", name, "\""));
  };
  const std::string& log_probability = config.log_probability_label();
  RETURN_IF_ERROR(check_name(".queries", config.queries()));
  RETURN_IF_ERROR(check_name(".items", config.items()));
  RETURN_IF_ERROR(
      check(".temperature", config.has_temperature(), absl::StrCat(config.temperature())));
  RETURN_IF_ERROR(check_name(".log_probability_label", log_probability));
  if (config.has_temperature()) loss->temperature = config.temperature();
  RETURN_IF_ERROR(CheckPositiveNumber(path + ".temperature", loss->temperature));
  loss->log_probability_label_name = log_probability;
  if (log_probability.empty()) return absl::OkStatus();
  return CheckName(path + ".log_probability_label", log_probability);
}

absl::Status ReadLabels(const v1::LossConfig& config, const std::string& path, LossSpec* loss) {
  loss->label_name = config.label().empty() ? std::string(kLabel) : config.label();
  RETURN_IF_ERROR(CheckName(path + ".label", loss->label_name));
  loss->weight_label_name = config.weight_label();
  if (loss->weight_label_name.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckName(path + ".weight_label", loss->weight_label_name));
  const bool is_label = loss->weight_label_name == loss->label_name;
  if (!is_label || loss->kind == LossKind::kInBatchSoftmax) return absl::OkStatus();
  return FieldError(path + ".weight_label", absl::StrCat("expected another label than the loss's, "
                                                         "found \"",
                                                         loss->label_name, "\""));
}

}  // namespace

const char* LossKindName(LossKind kind) {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "SOFTMAX_CROSS_ENTROPY";
    case LossKind::kSigmoidCrossEntropy:
      return "SIGMOID_CROSS_ENTROPY";
    case LossKind::kMeanSquaredError:
      return "MEAN_SQUARED_ERROR";
    case LossKind::kHuber:
      return "HUBER";
    case LossKind::kInBatchSoftmax:
      return "IN_BATCH_SOFTMAX";
  }
  return "";
}

bool IsRegression(LossKind kind) {
  return kind == LossKind::kMeanSquaredError || kind == LossKind::kHuber;
}

int64_t LossSpec::num_classes() const {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return outputs;
    case LossKind::kSigmoidCrossEntropy:
      return 2;
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
    case LossKind::kInBatchSoftmax:
      return 0;
  }
  return 0;
}

absl::StatusOr<LossSpec> ReadLoss(const v1::LossConfig& config, const std::string& path,
                                  const std::vector<LossInput>& inputs) {
  LossSpec loss;
  ASSIGN_OR_RETURN(loss.kind, ReadKind(config.kind(), path));
  RETURN_IF_ERROR(ReadInputs(path, inputs, &loss));
  RETURN_IF_ERROR(ReadLabels(config, path, &loss));
  loss.weight = config.has_weight() ? config.weight() : 1.0f;
  RETURN_IF_ERROR(CheckPositiveNumber(path + ".weight", loss.weight));
  RETURN_IF_ERROR(ReadDelta(config, path, &loss));
  RETURN_IF_ERROR(ReadFieldsOfPairs(config, path, &loss));
  return loss;
}

}  // namespace keelson
