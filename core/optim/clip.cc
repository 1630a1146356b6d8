#include "core/optim/clip.h"

#include <cmath>
#include <cstddef>
#include <numeric>

namespace keelson {
namespace {

// In lanes, so that the additions do not wait for each other.
double SquaredNorm(absl::Span<const float> x) {
  constexpr size_t kLanes = 8;
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) sums[k] += double{x[i + k]} * x[i + k];
  }
  for (; i < x.size(); ++i) sums[0] += double{x[i]} * x[i];
  return std::accumulate(sums, sums + kLanes, 0.0);
}

}  // namespace

float ClipByGlobalNorm(absl::Span<const absl::Span<float>> gradients, float max_norm) {
  double squared = 0;
  for (const absl::Span<float> gradient : gradients) squared += SquaredNorm(gradient);
  const double norm = std::sqrt(squared);
  if (std::isfinite(norm) && norm > max_norm) {
    const float scale = static_cast<float>(max_norm / norm);
    for (const absl::Span<float> gradient : gradients) {
      for (float& e : gradient) e *= scale;
    }
  }
  return static_cast<float>(norm);
}

}  // namespace keelson
