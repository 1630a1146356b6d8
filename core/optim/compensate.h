// The arithmetic of delay compensation on vectors of elements, chosen at run time for the
// processor. Internal to core/optim.
#ifndef KEELSON_CORE_OPTIM_COMPENSATE_H_
#define KEELSON_CORE_OPTIM_COMPENSATE_H_

#include "absl/types/span.h"
#include "core/optim/optimizer.h"

namespace keelson {

struct DelayCompensationRule {
  float lambda, decay, epsilon;
};

struct MeanSquareArrays {
  const float* in = nullptr;
  float* out = nullptr;  // may be `in`
};

// Updates the mean of the gradient's squares.
void UpdateMeanSquare(const DelayCompensationRule& rule, const EncodedGradient& gradient, size_t n,
                      const MeanSquareArrays& mean_square);

// Also updates it, and writes to `compensated` the gradient as it would be at `values`, given one
// that was computed from `worker_values`.
void Compensate(const DelayCompensationRule& rule, const EncodedGradient& gradient,
                const MeanSquareArrays& mean_square, const float* values,
                const float* worker_values, absl::Span<float> compensated);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_COMPENSATE_H_
