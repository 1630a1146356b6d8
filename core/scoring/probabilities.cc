#include "core/scoring/probabilities.h"

#include <algorithm>
#include <cmath>

namespace keelson {
namespace {

void Softmax(absl::Span<float> row) {
  const float highest = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (float& value : row) {
    value = std::exp(value - highest);
    sum += value;
  }
  for (float& value : row) value /= sum;
}

}  // namespace

void ScoresToProbabilities(LossKind loss, int64_t outputs, absl::Span<float> scores) {
  switch (loss) {
    case LossKind::kSoftmaxCrossEntropy:
      for (size_t begin = 0; begin < scores.size(); begin += outputs) {
        Softmax(scores.subspan(begin, outputs));
      }
      return;
    case LossKind::kSigmoidCrossEntropy:
      for (float& score : scores) score = 1 / (1 + std::exp(-score));
      return;
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
    case LossKind::kInBatchSoftmax:
      return;
  }
}

int64_t PredictedClass(absl::Span<const float> scores) {
  int64_t best = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return -1;
    if (scores[i] > scores[best]) best = static_cast<int64_t>(i);
  }
  return best;
}

}  // namespace keelson
