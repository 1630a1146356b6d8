#include "worker/script/gradient_clip.h"

#include <cmath>

namespace keelson {

void Clip(const GradientClip& clip, absl::Span<const absl::Span<float>> gradients) {
  if (clip.max_norm <= 0) return;
  double squares = 0;
  for (const size_t variable : clip.variables) {
    for (const float g : gradients[variable]) squares += static_cast<double>(g) * g;
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm) || norm <= clip.max_norm) return;
  const auto factor = static_cast<float>(clip.max_norm / norm);
  for (const size_t variable : clip.variables) {
    for (float& g : gradients[variable]) g *= factor;
  }
}

}  // namespace keelson
