#include "evaluator/script_scores.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

float LogProbability(float probability) { return std::log(std::max(probability, 1e-37f)); }

float LogOdds(float probability) {
  const double p = std::clamp<double>(probability, 1e-7, 1 - 1e-7);
  return static_cast<float>(std::log(p) - std::log1p(-p));
}

}  // namespace

absl::Status ProbabilitiesToLogits(int64_t outputs, absl::Span<float> scores) {
  for (float& score : scores) {
    if (score < 0 || score > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the script's scores: expected probabilities, found ", score));
    }
    if (std::isnan(score)) continue;
    score = outputs == 1 ? LogOdds(score) : LogProbability(score);
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(int64_t classes, int64_t first, absl::Span<const float> labels) {
  for (size_t row = 0; row < labels.size(); ++row) {
    const float label = labels[row];
    const bool is_class =
        label >= 0 && label < static_cast<float>(classes) && label == std::floor(label);
    if (classes == 0 ? std::isfinite(label) : is_class) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the script's labels: expected ",
        classes == 0 ? "finite numbers" : absl::StrCat("whole numbers from 0 to ", classes - 1),
        ", found ", label, " of record ", first + static_cast<int64_t>(row)));
  }
  return absl::OkStatus();
}

}  // namespace keelson
