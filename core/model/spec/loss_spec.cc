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
    default:
      return FieldError(path + ".kind",
                        "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY, "
                        "MEAN_SQUARED_ERROR or HUBER, found none");
  }
}

absl::Status CheckScores(LossKind kind, const std::string& path, const std::string& layer,
                         const Shape& shape) {
  const bool softmax = kind == LossKind::kSoftmaxCrossEntropy;
  const int64_t outputs = shape.num_elements();
  if (shape.rank() == 1 && (softmax ? outputs >= 2 : outputs == 1)) return absl::OkStatus();
  return FieldError(
      path, absl::StrCat(LossKindName(kind), " takes ", softmax ? "[classes], 2 or more" : "[1]",
                         ", found the output ", shape.ToString(), " of \"", layer, "\""));
}

absl::Status ReadDelta(const v1::LossConfig& config, const std::string& path, LossSpec* loss) {
  if (!config.has_delta()) return absl::OkStatus();
  if (loss->kind != LossKind::kHuber) {
    return FieldError(path + ".delta", absl::StrCat("expected none of ", LossKindName(loss->kind),
                                                    ", found ", config.delta()));
  }
  loss->delta = config.delta();
  return CheckPositiveNumber(path + ".delta", loss->delta);
}

absl::Status ReadLabels(const v1::LossConfig& config, const std::string& path, LossSpec* loss) {
  loss->label_name = config.label().empty() ? std::string(kLabel) : config.label();
  RETURN_IF_ERROR(CheckName(path + ".label", loss->label_name));
  loss->weight_label_name = config.weight_label();
  if (loss->weight_label_name.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckName(path + ".weight_label", loss->weight_label_name));
  if (loss->weight_label_name != loss->label_name) return absl::OkStatus();
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
      return 0;
  }
  return 0;
}

absl::StatusOr<LossSpec> ReadLoss(const v1::LossConfig& config, const std::string& path,
                                  ValueId scores, const std::string& layer, const Shape& shape) {
  LossSpec loss;
  ASSIGN_OR_RETURN(loss.kind, ReadKind(config.kind(), path));
  RETURN_IF_ERROR(CheckScores(loss.kind, path, layer, shape));
  loss.scores = scores;
  loss.outputs = shape.num_elements();
  RETURN_IF_ERROR(ReadLabels(config, path, &loss));
  loss.weight = config.has_weight() ? config.weight() : 1.0f;
  RETURN_IF_ERROR(CheckPositiveNumber(path + ".weight", loss.weight));
  RETURN_IF_ERROR(ReadDelta(config, path, &loss));
  return loss;
}

}  // namespace keelson
