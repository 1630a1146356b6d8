// Gradients whose values do not matter.
#ifndef KEELSON_BENCH_GRADIENTS_H_
#define KEELSON_BENCH_GRADIENTS_H_

#include <cstddef>

#include "absl/types/span.h"

namespace keelson::bench {

// Small numbers of both signs, neither zero nor denormal, like real gradients.
inline void FillGradient(absl::Span<float> gradient) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float magnitude = 1e-3f * static_cast<float>(1 + i % 1021);
    gradient[i] = i % 2 == 0 ? magnitude : -magnitude;
  }
}

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GRADIENTS_H_
