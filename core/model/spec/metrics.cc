#include "core/model/spec/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/model/spec/layer_relations.h"

namespace keelson {
namespace {

using Metric = v1::EvaluationConfig::Metric;
using Kind = MetricSpec::Kind;

absl::Status Expected(absl::string_view path, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", expected, ", found ", found));
}

absl::StatusOr<MetricSpec> InferTopK(int64_t k, const std::string& path, const ModelSpec& model) {
  if (model.main_loss().kind == LossKind::kInBatchSoftmax) {
    if (k >= 1) return MetricSpec{Kind::kTopK, k};
    return Expected(path + ".k", "1 or more", absl::StrCat(k));
  }
  if (k >= 1 && k <= model.main_loss().outputs) return MetricSpec{Kind::kTopK, k};
  return Expected(path + ".k", absl::StrCat("1..", model.main_loss().outputs, " (the classes)"),
                  absl::StrCat(k));
}

absl::StatusOr<MetricSpec> InferAuc(v1::EvaluationConfig::Auc::Curve curve,
                                    const std::string& path) {
  switch (curve) {
    case v1::EvaluationConfig::Auc::CURVE_UNSPECIFIED:
    case v1::EvaluationConfig::Auc::ROC:
      return MetricSpec{Kind::kAuc};
    case v1::EvaluationConfig::Auc::PRECISION_RECALL:
      return MetricSpec{Kind::kAucPrecisionRecall};
    default:
      return Expected(path + ".curve", "ROC or PRECISION_RECALL",
                      absl::StrCat(static_cast<int>(curve)));
  }
}

std::string Quoted(const std::string& name) { return absl::StrCat("\"", name, "\""); }

// The position of the feature of this name and one of these kinds, of which `what` tells.
absl::StatusOr<size_t> FeatureOfIds(const std::string& name, const std::string& path,
                                    const ModelSpec& model, absl::string_view what,
                                    absl::Span<const FeatureKind> kinds) {
  std::vector<std::string> possible;
  for (size_t i = 0; i < model.records.features.size(); ++i) {
    const FeatureSpec& feature = model.records.features[i];
    if (std::find(kinds.begin(), kinds.end(), feature.kind) == kinds.end()) continue;
    if (feature.name == name) return i;
    possible.push_back(feature.name);
  }
  return Expected(
      path,
      absl::StrCat("a feature of the kind ", what, " (",
                   possible.empty() ? "the model has none" : absl::StrJoin(possible, ", "), ")"),
      Quoted(name));
}

absl::StatusOr<size_t> IdFeature(const std::string& name, const std::string& path,
                                 const ModelSpec& model) {
  return FeatureOfIds(name, path, model, "id", {FeatureKind::kId});
}

absl::StatusOr<MetricSpec> InferGroupAuc(const v1::EvaluationConfig::GroupAuc& config,
                                         const std::string& path, const ModelSpec& model) {
  using GroupAuc = v1::EvaluationConfig::GroupAuc;
  MetricSpec metric{Kind::kGroupAuc};
  if (config.weighting() == GroupAuc::GROUPS) {
    metric.kind = Kind::kGroupAucMean;
  } else if (config.weighting() != GroupAuc::EXAMPLES) {
    return Expected(path + ".weighting", "EXAMPLES or GROUPS",
                    absl::StrCat(static_cast<int>(config.weighting())));
  }
  metric.group = config.feature();
  ASSIGN_OR_RETURN(metric.group_feature, IdFeature(metric.group, path + ".feature", model));
  return metric;
}

absl::Status CheckItemsDependOn(size_t feature, const std::string& path, const ModelSpec& model) {
  const ValueId items = model.main_loss().inputs[1];
  const std::vector<bool> taken = FeaturesOf(model, items);
  if (taken[feature]) return absl::OkStatus();
  std::vector<std::string> names;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) names.push_back(model.records.features[i].name);
  }
  return Expected(path,
                  absl::StrCat("a feature that the layer ", Quoted(model.NameOf(items)),
                               " depends on (", absl::StrJoin(names, ", "), ")"),
                  Quoted(model.records.features[feature].name));
}

absl::StatusOr<Kind> RetrievalKind(v1::EvaluationConfig::Retrieval::Measure measure,
                                   const std::string& path) {
  switch (measure) {
    case v1::EvaluationConfig::Retrieval::RECALL:
      return Kind::kRetrievalRecall;
    case v1::EvaluationConfig::Retrieval::HIT_RATE:
      return Kind::kRetrievalHitRate;
    case v1::EvaluationConfig::Retrieval::NDCG:
      return Kind::kRetrievalNdcg;
    default:
      return Expected(path, "RECALL, HIT_RATE or NDCG", absl::StrCat(static_cast<int>(measure)));
  }
}

absl::StatusOr<MetricSpec> InferRetrieval(const v1::EvaluationConfig::Retrieval& config,
                                          const std::string& path, const ModelSpec& model) {
  MetricSpec metric;
  ASSIGN_OR_RETURN(metric.kind, RetrievalKind(config.measure(), path + ".measure"));
  metric.k = config.k();
  if (metric.k < 1) return Expected(path + ".k", "1 or more", absl::StrCat(metric.k));
  RetrievalSpec& retrieval = metric.retrieval;
  ASSIGN_OR_RETURN(retrieval.item_feature,
                   IdFeature(config.item_feature(), path + ".item_feature", model));
  RETURN_IF_ERROR(CheckItemsDependOn(retrieval.item_feature, path + ".item_feature", model));
  if (!config.query_feature().empty()) {
    ASSIGN_OR_RETURN(retrieval.query_feature,
                     IdFeature(config.query_feature(), path + ".query_feature", model));
  }
  for (int i = 0; i < config.exclude_features_size(); ++i) {
    const std::string of_feature = absl::StrCat(path, ".exclude_features[", i, "]");
    ASSIGN_OR_RETURN(const size_t feature,
                     FeatureOfIds(config.exclude_features(i), of_feature, model, "id or bag",
                                  {FeatureKind::kId, FeatureKind::kBag}));
    if (feature == retrieval.item_feature) {
      return Expected(of_feature, "another feature than the items'",
                      Quoted(config.exclude_features(i)));
    }
    retrieval.exclude_features.push_back(feature);
  }
  return metric;
}

// The losses for which the metric is defined.
std::vector<LossKind> LossesOf(Metric::KindCase kind) {
  switch (kind) {
    case Metric::kTopK:
      return {LossKind::kSoftmaxCrossEntropy, LossKind::kInBatchSoftmax};
    case Metric::kAuc:
    case Metric::kNormalizedEntropy:
    case Metric::kCalibration:
    case Metric::kGroupAuc:
      return {LossKind::kSigmoidCrossEntropy};
    case Metric::kRetrieval:
      return {LossKind::kInBatchSoftmax};
    case Metric::kMeanSquaredError:
    case Metric::kMeanAbsoluteError:
      return {LossKind::kMeanSquaredError, LossKind::kHuber, LossKind::kSigmoidCrossEntropy};
    case Metric::kAccuracy:
      return {LossKind::kSoftmaxCrossEntropy, LossKind::kSigmoidCrossEntropy,
              LossKind::kInBatchSoftmax};
    case Metric::kPrecision:
    case Metric::kRecall:
    case Metric::KIND_NOT_SET:
      break;
  }
  return {LossKind::kSoftmaxCrossEntropy, LossKind::kSigmoidCrossEntropy};
}

absl::Status CheckLoss(const std::string& path, Metric::KindCase kind, LossKind loss) {
  std::vector<std::string> names;
  for (const LossKind possible : LossesOf(kind)) {
    if (possible == loss) return absl::OkStatus();
    names.push_back(LossKindName(possible));
  }
  return Expected(path, absl::StrCat("a model with the loss ", absl::StrJoin(names, " or ")),
                  LossKindName(loss));
}

absl::StatusOr<MetricSpec> InferMetric(const Metric& config, const std::string& path,
                                       const ModelSpec& model) {
  const auto* const field = config.GetReflection()->GetOneofFieldDescriptor(
      config, config.GetDescriptor()->FindOneofByName("kind"));
  if (field == nullptr) {
    return Expected(path,
                    "accuracy, top_k, auc, precision, recall, mean_squared_error, "
                    "mean_absolute_error, normalized_entropy, calibration, group_auc or "
                    "retrieval",
                    "none");
  }
  const std::string of_kind = absl::StrCat(path, ".", field->name());
  RETURN_IF_ERROR(CheckLoss(of_kind, config.kind_case(), model.main_loss().kind));
  switch (config.kind_case()) {
    case Metric::kTopK:
      return InferTopK(config.top_k().k(), of_kind, model);
    case Metric::kAuc:
      return InferAuc(config.auc().curve(), of_kind);
    case Metric::kPrecision:
      return MetricSpec{Kind::kPrecision};
    case Metric::kRecall:
      return MetricSpec{Kind::kRecall};
    case Metric::kMeanSquaredError:
      return MetricSpec{Kind::kMeanSquaredError};
    case Metric::kMeanAbsoluteError:
      return MetricSpec{Kind::kMeanAbsoluteError};
    case Metric::kNormalizedEntropy:
      return MetricSpec{Kind::kNormalizedEntropy};
    case Metric::kCalibration:
      return MetricSpec{Kind::kCalibration};
    case Metric::kGroupAuc:
      return InferGroupAuc(config.group_auc(), of_kind, model);
    case Metric::kRetrieval:
      return InferRetrieval(config.retrieval(), of_kind, model);
    case Metric::kAccuracy:
    case Metric::KIND_NOT_SET:
      break;
  }
  return MetricSpec{Kind::kAccuracy};
}

bool IsRightSide(float score, float label) { return label > 0.5f ? score > 0 : score <= 0; }

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
  switch (kind) {
    case Kind::kAccuracy:
      return "accuracy";
    case Kind::kTopK:
      return absl::StrCat("top_", k);
    case Kind::kAuc:
      return "auc";
    case Kind::kAucPrecisionRecall:
      return "auc_pr";
    case Kind::kPrecision:
      return "precision";
    case Kind::kRecall:
      return "recall";
    case Kind::kMeanSquaredError:
      return "mean_squared_error";
    case Kind::kMeanAbsoluteError:
      return "mean_absolute_error";
    case Kind::kNormalizedEntropy:
      return "normalized_entropy";
    case Kind::kCalibration:
      return "calibration";
    case Kind::kGroupAuc:
      return absl::StrCat("group_auc/", group);
    case Kind::kGroupAucMean:
      return absl::StrCat("group_auc_mean/", group);
    case Kind::kRetrievalRecall:
      return absl::StrCat("recall@", k);
    case Kind::kRetrievalHitRate:
      return absl::StrCat("hit_rate@", k);
    case Kind::kRetrievalNdcg:
      return absl::StrCat("ndcg@", k);
  }
  return "";
}

absl::StatusOr<std::vector<MetricSpec>> InferMetrics(const v1::EvaluationConfig& config,
                                                     const ModelSpec& model) {
  std::vector<MetricSpec> metrics;
  if (config.metrics().empty() && !IsRegression(model.main_loss().kind)) {
    metrics.push_back({Kind::kAccuracy});
  }
  for (int i = 0; i < config.metrics_size(); ++i) {
    const std::string path = absl::StrCat("evaluation.metrics[", i, "]");
    ASSIGN_OR_RETURN(const MetricSpec metric, InferMetric(config.metrics(i), path, model));
    const bool repeated = std::any_of(metrics.begin(), metrics.end(), [&](const MetricSpec& other) {
      return other.name() == metric.name();
    });
    if (repeated) return Expected(path, "each metric once", absl::StrCat(metric.name(), " again"));
    metrics.push_back(metric);
  }
  return metrics;
}

std::string LossMetricName(const LossSpec& loss) { return absl::StrCat("loss/", loss.label_name); }

void EvaluationSums::Add(const EvaluationSums& other) {
  loss += other.loss;
  examples += other.examples;
  losses.resize(std::max(losses.size(), other.losses.size()), 0);
  for (size_t i = 0; i < other.losses.size(); ++i) losses[i] += other.losses[i];
  correct.resize(std::max(correct.size(), other.correct.size()), 0);
  for (size_t i = 0; i < other.correct.size(); ++i) correct[i] += other.correct[i];
}

int64_t CountCorrect(const MetricSpec& metric, int64_t output_size, absl::Span<const float> scores,
                     absl::Span<const float> labels) {
  int64_t correct = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const absl::Span<const float> of_row = scores.subspan(row * output_size, output_size);
    const bool right = output_size == 1 ? IsRightSide(of_row[0], labels[row])
                                        : InTopK(of_row, labels[row], metric.k);
    correct += right ? 1 : 0;
  }
  return correct;
}

int64_t CountCorrectPairs(const MetricSpec& metric, int64_t pairs, absl::Span<const float> scores) {
  int64_t correct = 0;
  for (int64_t row = 0; row < pairs; ++row) {
    const absl::Span<const float> of_row = scores.subspan(row * pairs, pairs);
    correct += InTopK(of_row, static_cast<size_t>(row), metric.k) ? 1 : 0;
  }
  return correct;
}

std::map<std::string, double> MetricValues(const ModelSpec& model, const EvaluationSums& sums,
                                           absl::Span<const MetricSpec> metrics) {
  const auto examples = static_cast<double>(sums.examples);
  std::map<std::string, double> values{{"loss", sums.loss / examples}};
  if (model.losses.size() > 1) {
    for (size_t i = 0; i < model.losses.size(); ++i) {
      const double sum = i < sums.losses.size() ? sums.losses[i] : 0;
      values[LossMetricName(model.losses[i])] = sum / examples;
    }
  }
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (!metrics[i].counts_examples()) continue;
    const double correct = i < sums.correct.size() ? static_cast<double>(sums.correct[i]) : 0.0;
    values[metrics[i].name()] = correct / examples;
  }
  return values;
}

}  // namespace keelson
