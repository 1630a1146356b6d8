#include "core/optim/clip.h"

#include <cmath>
#include <cstddef>
#include <numeric>

// This file is compiled once per instruction set.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/optim/clip.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace keelson {
namespace HWY_NAMESPACE {
namespace {

// The compiler makes SIMD code of both. The number of partial sums is fixed, so that the additions
// do not wait for each other and happen in the same order on all processors.
double SquaredNorm(const float* x, size_t n) {
  constexpr size_t kSums = 16;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += double{x[i + k]} * x[i + k];
  }
  for (; i < n; ++i) sums[0] += double{x[i]} * x[i];
  return std::accumulate(sums, sums + kSums, 0.0);
}

void Scale(float scale, size_t n, float* x) {
  for (size_t i = 0; i < n; ++i) x[i] *= scale;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keelson
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keelson {
namespace {

HWY_EXPORT(SquaredNorm);
HWY_EXPORT(Scale);

}  // namespace

float ClipByGlobalNorm(absl::Span<const absl::Span<float>> gradients, float max_norm) {
  double squared = 0;
  for (const absl::Span<float> gradient : gradients) {
    squared += HWY_DYNAMIC_DISPATCH(SquaredNorm)(gradient.data(), gradient.size());
  }
  const double norm = std::sqrt(squared);
  if (std::isfinite(norm) && norm > max_norm) {
    const float scale = static_cast<float>(max_norm / norm);
    for (const absl::Span<float> gradient : gradients) {
      HWY_DYNAMIC_DISPATCH(Scale)(scale, gradient.size(), gradient.data());
    }
  }
  return static_cast<float>(norm);
}

}  // namespace keelson
#endif  // HWY_ONCE
