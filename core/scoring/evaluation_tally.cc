#include "core/scoring/evaluation_tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/scoring/probabilities.h"

namespace keelson {
namespace {

// Ids of a feature that a report lists.
constexpr size_t kListedValues = 20;

std::vector<std::string> NamesOr(std::vector<std::string> names, int64_t classes) {
  if (!names.empty()) return names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(absl::StrCat(i));
  return names;
}

// Those of the metric's groups, which the report of its evaluation has.
const GroupRankingFigures& FiguresOf(const MetricSpec& metric, const EvaluationReport& report) {
  return std::find_if(report.groups.begin(), report.groups.end(),
                      [&](const GroupReport& group) { return group.feature == metric.group; })
      ->figures;
}

}  // namespace

EvaluationTally::EvaluationTally(const ModelSpec* model, const std::vector<MetricSpec>* metrics,
                                 std::vector<std::string> class_names)
    : model_(*model),
      metrics_(*metrics),
      class_names_(NamesOr(std::move(class_names), model->main_loss().num_classes())),
      counts_(model->main_loss().num_classes()) {
  for (const MetricSpec& metric : metrics_) {
    if (metric.has_groups()) groups_.try_emplace(metric.group_feature);
  }
  if (model_.main_loss().kind != LossKind::kSigmoidCrossEntropy) return;
  for (size_t i = 0; i < model_.records.features.size(); ++i) {
    if (model_.records.features[i].kind == FeatureKind::kId) slices_.try_emplace(i);
  }
}

void EvaluationTally::Add(int64_t first_record, const Batch& batch, const EvaluationSums& sums,
                          absl::Span<float> scores) {
  sums_.Add(sums);
  // Of pairs nothing is known but the sums.
  if (!model_.main_loss().label) return;
  const size_t outputs = model_.main_loss().outputs;
  const Tensor& labels = batch.labels[*model_.main_loss().label];
  AddGroups(batch, scores);
  AddSlices(batch, scores);
  for (int64_t row = 0; row < labels.shape().num_elements(); ++row) {
    const Row each = {batch, row, first_record + row, labels.span()[row]};
    const absl::Span<float> of_row = scores.subspan(row * outputs, outputs);
    switch (model_.main_loss().kind) {
      case LossKind::kSoftmaxCrossEntropy:
        AddClasses(each, of_row);
        break;
      case LossKind::kSigmoidCrossEntropy:
        AddBinary(each, of_row.data());
        break;
      case LossKind::kMeanSquaredError:
      case LossKind::kHuber:
        AddRegression(each, of_row[0]);
        break;
      case LossKind::kInBatchSoftmax:
        break;
    }
  }
}

void EvaluationTally::AddClasses(const Row& row, absl::Span<float> scores) {
  const int64_t predicted = PredictedClass(scores);
  ScoresToProbabilities(model_.main_loss().kind, model_.main_loss().outputs, scores);
  const auto label_class = static_cast<int64_t>(row.label);
  const float confidence =
      predicted < 0 ? std::numeric_limits<float>::quiet_NaN() : scores[predicted];
  counts_.Add(label_class, predicted);
  calibration_.Add(confidence, predicted == label_class);
  AddWrong(row, predicted, confidence, scores[label_class]);
}

void EvaluationTally::AddBinary(const Row& row, float* score) {
  const bool positive = row.label > 0.5f;
  ranking_.Add(*score, positive);
  totals_.Add(*score, positive);
  const int64_t predicted = std::isnan(*score) ? -1 : (*score > 0 ? 1 : 0);
  ScoresToProbabilities(model_.main_loss().kind, 1, absl::MakeSpan(score, 1));
  const float probability = *score;
  counts_.Add(positive ? 1 : 0, predicted);
  calibration_.Add(probability, positive);
  errors_.Add(row.label, probability);
  AddWrong(row, predicted, predicted == 1 ? probability : 1 - probability,
           positive ? probability : 1 - probability);
}

void EvaluationTally::AddGroups(const Batch& batch, absl::Span<const float> scores) {
  for (auto& [feature, groups] : groups_) {
    const std::vector<uint64_t>& ids = batch.features[feature].ids;
    const absl::Span<const float> labels = batch.labels[*model_.main_loss().label].span();
    for (size_t i = 0; i < ids.size(); ++i) groups.Add(ids[i], scores[i], labels[i] > 0.5f);
  }
}

void EvaluationTally::AddSlices(const Batch& batch, absl::Span<const float> scores) {
  for (auto& [feature, slices] : slices_) {
    const std::vector<uint64_t>& ids = batch.features[feature].ids;
    const absl::Span<const float> labels = batch.labels[*model_.main_loss().label].span();
    for (size_t i = 0; i < ids.size(); ++i) slices.Add(ids[i], scores[i], labels[i] > 0.5f);
  }
}

void EvaluationTally::AddRegression(const Row& row, float prediction) {
  errors_.Add(row.label, prediction);
  pairs_.Add(row.record, row.label, prediction);
  if (prediction == row.label) return;
  worst_.Add({.record = row.record,
              .badness = std::abs(static_cast<double>(prediction) - row.label),
              .label = row.label,
              .prediction = prediction},
             row.batch, row.row);
}

void EvaluationTally::AddWrong(const Row& row, int64_t predicted, float confidence,
                               float label_probability) {
  if (predicted == static_cast<int64_t>(row.label)) return;
  worst_.Add({.record = row.record,
              .badness = -static_cast<double>(label_probability),
              .label = row.label,
              .prediction = static_cast<float>(predicted),
              .confidence = confidence,
              .label_probability = label_probability},
             row.batch, row.row);
}

EvaluationOutcome EvaluationTally::Finish() {
  EvaluationOutcome outcome;
  outcome.report = Report();
  outcome.metrics = MetricValues(model_, sums_, metrics_);
  for (const MetricSpec& metric : metrics_) {
    if (metric.counts_examples() || metric.is_retrieval()) continue;
    outcome.metrics[metric.name()] = Value(metric, outcome.report);
  }
  return outcome;
}

EvaluationReport EvaluationTally::Report() {
  EvaluationReport report;
  report.loss = model_.main_loss().kind;
  report.examples = sums_.examples;
  report.wrong = worst_.worst();
  if (const FeatureSpec* const feature = model_.records.only_numbers()) {
    report.input_shape = feature->shape;
  }
  report.features = model_.records.features;
  if (report.loss == LossKind::kInBatchSoftmax) return report;
  if (model_.main_loss().kind != LossKind::kSoftmaxCrossEntropy) {
    report.mean_squared_error = errors_.MeanSquared();
    report.mean_absolute_error = errors_.MeanAbsolute();
  }
  if (model_.main_loss().kind == LossKind::kSigmoidCrossEntropy) {
    const std::vector<ScoreCounts> by_score = ranking_.ByScore();
    report.ranking = RankingCurvesOf(by_score);
    report.calibration_deciles = CalibrationByDecile(by_score);
    report.scores = ScoreHistogram(by_score);
    report.normalized_entropy = totals_.NormalizedEntropy();
    report.calibration_ratio = totals_.CalibrationRatio();
    for (auto& [feature, groups] : groups_) {
      report.groups.push_back({model_.records.features[feature].name, groups.Figures()});
    }
    for (const auto& [feature, slices] : slices_) {
      report.slices.push_back({model_.records.features[feature].name, slices.ids(),
                               slices.MostFrequent(kListedValues), slices.ByFrequency(),
                               slices.others()});
    }
  }
  if (IsRegression(model_.main_loss().kind)) {
    report.pairs = pairs_.Pairs();
    return report;
  }
  report.classes = class_names_;
  report.accuracy = counts_.Accuracy();
  report.confusion = counts_.Confusion();
  report.per_class = counts_.Qualities();
  report.calibration = calibration_.Bins();
  report.calibration_error = calibration_.Error();
  return report;
}

double EvaluationTally::Value(const MetricSpec& metric, const EvaluationReport& report) const {
  // With binary labels those of label 1 count, otherwise the mean of the classes.
  const auto quality = [&] {
    return model_.main_loss().outputs == 1 ? report.per_class[1] : MeanOfClasses(report.per_class);
  };
  switch (metric.kind) {
    case MetricSpec::Kind::kAuc:
      return report.ranking->auc;
    case MetricSpec::Kind::kAucPrecisionRecall:
      return report.ranking->auc_pr;
    case MetricSpec::Kind::kPrecision:
      return quality().precision;
    case MetricSpec::Kind::kRecall:
      return quality().recall;
    case MetricSpec::Kind::kMeanSquaredError:
      return report.mean_squared_error;
    case MetricSpec::Kind::kMeanAbsoluteError:
      return report.mean_absolute_error;
    case MetricSpec::Kind::kNormalizedEntropy:
      return report.normalized_entropy;
    case MetricSpec::Kind::kCalibration:
      return report.calibration_ratio;
    case MetricSpec::Kind::kGroupAuc:
      return FiguresOf(metric, report).auc;
    case MetricSpec::Kind::kGroupAucMean:
      return FiguresOf(metric, report).mean_auc;
    case MetricSpec::Kind::kAccuracy:
    case MetricSpec::Kind::kTopK:
    case MetricSpec::Kind::kRetrievalRecall:
    case MetricSpec::Kind::kRetrievalHitRate:
    case MetricSpec::Kind::kRetrievalNdcg:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace keelson
