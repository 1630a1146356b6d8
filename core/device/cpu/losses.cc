#include "core/device/cpu/losses.h"

#include <algorithm>
#include <cmath>

namespace keelson {
namespace {

// Below this many scores waking threads costs more than they save.
constexpr int64_t kMinParallelScores = 1 << 15;

}  // namespace

void SoftmaxCrossEntropyLoss(int64_t rows, int64_t classes, float weight, const float* scores,
                             const float* labels, float* losses, float* dscores) {
#pragma omp parallel for schedule(static) if (rows * classes >= kMinParallelScores)
  for (int64_t row = 0; row < rows; ++row) {
    const float* s = scores + row * classes;
    const double highest = *std::max_element(s, s + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(s[c] - highest);
    const auto label = static_cast<int64_t>(labels[row]);
    losses[row] = static_cast<float>(std::log(sum) - (s[label] - highest));
    if (dscores == nullptr) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(s[c] - highest) / sum;
      dscores[row * classes + c] =
          static_cast<float>((probability - (c == label ? 1.0 : 0.0)) * weight);
    }
  }
}

void SigmoidCrossEntropyLoss(int64_t rows, float weight, const float* scores, const float* labels,
                             float* losses, float* dscores) {
  for (int64_t row = 0; row < rows; ++row) {
    const double s = scores[row];
    const double label = labels[row];
    const double e = std::exp(-std::abs(s));
    losses[row] = static_cast<float>(std::max(s, 0.0) - s * label + std::log1p(e));
    if (dscores == nullptr) continue;
    const double probability = (s >= 0 ? 1.0 : e) / (1.0 + e);
    dscores[row] = static_cast<float>((probability - label) * weight);
  }
}

void MeanSquaredErrorLoss(int64_t rows, float weight, const float* scores, const float* targets,
                          float* losses, float* dscores) {
  for (int64_t row = 0; row < rows; ++row) {
    const double error = static_cast<double>(scores[row]) - targets[row];
    losses[row] = static_cast<float>(error * error);
    if (dscores != nullptr) dscores[row] = static_cast<float>(2.0 * error * weight);
  }
}

void HuberLosses(int64_t rows, float delta, float weight, const float* scores, const float* targets,
                 float* losses, float* dscores) {
  const double limit = delta;
  for (int64_t row = 0; row < rows; ++row) {
    const double error = static_cast<double>(scores[row]) - targets[row];
    // The clamped error e is the slope, and e * (error - e / 2) both branches of the loss.
    const double slope = std::clamp(error, -limit, limit);
    losses[row] = static_cast<float>(slope * (error - 0.5 * slope));
    if (dscores != nullptr) dscores[row] = static_cast<float>(slope * weight);
  }
}

}  // namespace keelson
