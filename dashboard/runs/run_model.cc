#include "dashboard/runs/run_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/model/spec/model_variables.h"

namespace keelson {
namespace {

// With more classes than this, their names are of no use.
constexpr int64_t kMaxClasses = 100000;
// The metric of early stopping and of the best exports, if they name none.
constexpr char kDefaultMetric[] = "loss";

std::vector<std::string> ClassNames(const v1::TrainConfig& config, int64_t num_classes) {
  std::vector<std::string> names;
  if (num_classes > kMaxClasses) return names;
  for (int64_t i = 0; i < num_classes; ++i) {
    const bool named = i < config.data().class_names_size();
    names.push_back(named ? config.data().class_names(static_cast<int>(i)) : absl::StrCat(i));
  }
  return names;
}

}  // namespace

const char* RunModel::kind() const {
  switch (spec.main_loss().kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return "classification";
    case LossKind::kSigmoidCrossEntropy:
      return "binary";
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
      return "regression";
    case LossKind::kInBatchSoftmax:
      return "retrieval";
  }
  return "";
}

int64_t RunModel::num_parameters() const {
  int64_t count = 0;
  for (const VariableSpec& variable : spec.variables) count += variable.shape.num_elements();
  return count;
}

std::vector<std::string> RunModel::judged_metrics() const {
  const auto name_of = [](const std::string& metric) {
    return metric.empty() ? std::string(kDefaultMetric) : metric;
  };
  std::vector<std::string> names;
  const v1::EvaluationConfig& evaluation = config.evaluation();
  if (evaluation.has_early_stopping()) {
    names.push_back(name_of(evaluation.early_stopping().metric()));
  }
  for (const auto& exporter : evaluation.exporters()) {
    if (exporter.has_best()) names.push_back(name_of(exporter.best().metric()));
  }
  return names;
}

absl::StatusOr<RunModel> ParseRunModel(const std::string& text, const std::string& source_name) {
  RunModel model;
  ASSIGN_OR_RETURN(model.config, ParseTrainConfig(text, source_name));
  model.text = text;
  if (model.external()) {
    ASSIGN_OR_RETURN(ModelVariables variables, InferVariables(model.config.model()));
    model.spec.name = model.config.model().name();
    model.spec.variables = std::move(variables.variables);
    model.spec.tables = std::move(variables.tables);
    return model;
  }
  ASSIGN_OR_RETURN(model.spec, InferModelSpec(model.config.model()));
  model.classes = ClassNames(model.config, model.spec.main_loss().num_classes());
  return model;
}

std::string RunConfigPath(const std::string& model_dir) {
  return JoinPath(model_dir, "train_config.textproto");
}

}  // namespace keelson
