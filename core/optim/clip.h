// Clipping of a whole gradient by its norm, done by the worker before it pushes.
// Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
// ICML 2013.
#ifndef KEELSON_CORE_OPTIM_CLIP_H_
#define KEELSON_CORE_OPTIM_CLIP_H_

#include "absl/types/span.h"

namespace keelson {

// Scales all `gradients` (one span per variable) in place by max_norm / norm when their joint
// Euclidean norm is greater than `max_norm`, which is > 0. Returns the norm before. A norm that is
// not finite is returned too, and leaves the gradients as they are.
float ClipByGlobalNorm(absl::Span<const absl::Span<float>> gradients, float max_norm);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_CLIP_H_
