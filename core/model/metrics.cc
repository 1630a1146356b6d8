#include "core/model/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status Invalid(absl::string_view path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
}

absl::Status RefuseLoss(absl::string_view path, const MetricSpec& metric, const ModelSpec& model) {
  return Invalid(
      path, absl::StrCat(metric.name(), " does not go with the loss ", LossKindName(model.loss)));
}

absl::StatusOr<MetricSpec> InferAccuracy(const std::string& path, const ModelSpec& model) {
  const MetricSpec metric{MetricSpec::Kind::kAccuracy, 1};
  if (model.loss == LossKind::kMeanSquaredError) return RefuseLoss(path, metric, model);
  return metric;
}

absl::StatusOr<MetricSpec> InferTopK(const v1::EvaluationConfig::TopK& config,
                                     const std::string& path, const ModelSpec& model) {
  const MetricSpec metric{MetricSpec::Kind::kTopK, config.k()};
  if (model.loss != LossKind::kSoftmaxCrossEntropy) return RefuseLoss(path, metric, model);
  if (config.k() >= 1 && config.k() <= model.output_size) return metric;
  return Invalid(absl::StrCat(path, ".k"),
                 absl::StrCat("expected 1 to ", model.output_size, ", found ", config.k()));
}

absl::StatusOr<MetricSpec> InferMetric(const v1::EvaluationConfig::Metric& config,
                                       const std::string& path, const ModelSpec& model) {
  switch (config.kind_case()) {
    case v1::EvaluationConfig::Metric::kAccuracy:
      return InferAccuracy(absl::StrCat(path, ".accuracy"), model);
    case v1::EvaluationConfig::Metric::kTopK:
      return InferTopK(config.top_k(), absl::StrCat(path, ".top_k"), model);
    case v1::EvaluationConfig::Metric::KIND_NOT_SET:
      break;
  }
  return Invalid(path, "expected accuracy or top_k, found none");
}

// Whether fewer than k scores stand before the label's.
bool InTopK(absl::Span<const float> scores, size_t label, int64_t k) {
  int64_t before = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool behind = scores[i] < scores[label] || (scores[i] == scores[label] && i >= label);
    before += behind ? 0 : 1;
  }
  return before < k;
}

}  // namespace

std::string MetricSpec::name() const {
  return kind == Kind::kAccuracy ? "accuracy" : absl::StrCat("top_", k);
}

absl::StatusOr<std::vector<MetricSpec>> InferMetrics(const v1::EvaluationConfig& config,
                                                     const ModelSpec& model) {
  std::vector<MetricSpec> metrics;
  if (config.metrics().empty() && model.loss != LossKind::kMeanSquaredError) {
    metrics.push_back({MetricSpec::Kind::kAccuracy, 1});
  }
  for (int i = 0; i < config.metrics_size(); ++i) {
    const std::string path = absl::StrCat("evaluation.metrics[", i, "]");
    ASSIGN_OR_RETURN(const MetricSpec metric, InferMetric(config.metrics(i), path, model));
    const bool repeated = std::any_of(metrics.begin(), metrics.end(), [&](const MetricSpec& other) {
      return other.name() == metric.name();
    });
    if (repeated) return Invalid(path, absl::StrCat(metric.name(), " is there twice"));
    metrics.push_back(metric);
  }
  return metrics;
}

void EvaluationSums::Add(const EvaluationSums& other) {
  loss += other.loss;
  examples += other.examples;
  correct.resize(std::max(correct.size(), other.correct.size()), 0);
  for (size_t i = 0; i < other.correct.size(); ++i) correct[i] += other.correct[i];
}

int64_t CountCorrect(const MetricSpec& metric, int64_t output_size, absl::Span<const float> scores,
                     absl::Span<const float> labels) {
  const auto width = static_cast<size_t>(output_size);
  int64_t correct = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const absl::Span<const float> of_row = scores.subspan(row * width, width);
    const bool right = width == 1 ? (of_row[0] > 0) == (labels[row] > 0.5f)
                                  : InTopK(of_row, static_cast<size_t>(labels[row]), metric.k);
    correct += right ? 1 : 0;
  }
  return correct;
}

std::map<std::string, double> MetricValues(const EvaluationSums& sums,
                                           absl::Span<const MetricSpec> metrics) {
  const auto examples = static_cast<double>(sums.examples);
  std::map<std::string, double> values{{"loss", sums.loss / examples}};
  for (size_t i = 0; i < metrics.size(); ++i) {
    const double correct = i < sums.correct.size() ? static_cast<double>(sums.correct[i]) : 0.0;
    values[metrics[i].name()] = correct / examples;
  }
  return values;
}

}  // namespace keelson
