#include "core/scoring/score_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace keelson {
namespace {

// -log softmax of the label's score.
double SoftmaxLoss(absl::Span<const float> scores, size_t label) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - highest);
  return std::log(sum) + highest - scores[label];
}

double SigmoidLoss(double score, double label) {
  return std::max(score, 0.0) - score * label + std::log1p(std::exp(-std::abs(score)));
}

double HuberLoss(double error, double limit) {
  const double slope = std::clamp(error, -limit, limit);
  return slope * (error - 0.5 * slope);
}

double LossOf(const LossSpec& loss, absl::Span<const float> scores, float label) {
  switch (loss.kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return SoftmaxLoss(scores, static_cast<size_t>(label));
    case LossKind::kSigmoidCrossEntropy:
      return SigmoidLoss(scores[0], label);
    case LossKind::kMeanSquaredError: {
      const double error = static_cast<double>(scores[0]) - label;
      return error * error;
    }
    case LossKind::kHuber:
      return HuberLoss(static_cast<double>(scores[0]) - label, loss.delta);
    case LossKind::kInBatchSoftmax:
      break;
  }
  return std::nan("");
}

}  // namespace

EvaluationSums SumsOfScores(const LossSpec& loss, absl::Span<const MetricSpec> metrics,
                            absl::Span<const float> scores, absl::Span<const float> labels) {
  EvaluationSums sums;
  sums.examples = static_cast<int64_t>(labels.size());
  for (size_t row = 0; row < labels.size(); ++row) {
    sums.loss += LossOf(loss, scores.subspan(row * loss.outputs, loss.outputs), labels[row]);
  }
  for (const MetricSpec& metric : metrics) {
    sums.correct.push_back(
        metric.counts_examples() ? CountCorrect(metric, loss.outputs, scores, labels) : 0);
  }
  return sums;
}

}  // namespace keelson
