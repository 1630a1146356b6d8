#include "core/model/spec/loss_spec.h"

#include <cmath>

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
    default:
      return FieldError(path + ".kind",
                        "expected SOFTMAX_CROSS_ENTROPY, SIGMOID_CROSS_ENTROPY or "
                        "MEAN_SQUARED_ERROR, found none");
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

}  // namespace

const char* LossKindName(LossKind kind) {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "SOFTMAX_CROSS_ENTROPY";
    case LossKind::kSigmoidCrossEntropy:
      return "SIGMOID_CROSS_ENTROPY";
    case LossKind::kMeanSquaredError:
      return "MEAN_SQUARED_ERROR";
  }
  return "";
}

int64_t LossSpec::num_classes() const {
  switch (kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return outputs;
    case LossKind::kSigmoidCrossEntropy:
      return 2;
    case LossKind::kMeanSquaredError:
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
  loss.label_name = config.label().empty() ? std::string(kLabel) : config.label();
  RETURN_IF_ERROR(CheckName(path + ".label", loss.label_name));
  loss.weight = config.has_weight() ? config.weight() : 1.0f;
  // Written so that not-a-number fails too.
  if (!(loss.weight > 0 && std::isfinite(loss.weight))) {
    return FieldError(path + ".weight", absl::StrCat("expected > 0, found ", loss.weight));
  }
  return loss;
}

}  // namespace keelson
