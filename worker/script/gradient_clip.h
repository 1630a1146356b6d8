// Bounds the gradients of a script as workers bound theirs (optimizer.clip_global_norm).
#ifndef KEELSON_WORKER_SCRIPT_GRADIENT_CLIP_H_
#define KEELSON_WORKER_SCRIPT_GRADIENT_CLIP_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace keelson {

struct GradientClip {
  float max_norm = 0;  // 0: none
  // Whose gradients count and are scaled: those that are trained.
  std::vector<size_t> variables;
};

// Scales the gradients in place where their norm is greater. One that is not finite leaves them as
// they are. Again is as once.
void Clip(const GradientClip& clip, absl::Span<const absl::Span<float>> gradients);

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_GRADIENT_CLIP_H_
