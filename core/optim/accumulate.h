// Sums of encoded gradients, as SIMD code chosen at run time for the processor. Every processor
// gives the same bits.
#ifndef KEELSON_CORE_OPTIM_ACCUMULATE_H_
#define KEELSON_CORE_OPTIM_ACCUMULATE_H_

#include "absl/types/span.h"
#include "core/optim/optimizer.h"

namespace keelson {

// sum += weight * gradient. The gradient has as many elements as `sum`.
void AddWeighted(const EncodedGradient& gradient, float weight, absl::Span<float> sum);

// sum = weight * gradient: what AddWeighted makes of zeros, whatever was there.
void BeginWeighted(const EncodedGradient& gradient, float weight, absl::Span<float> sum);

// elements /= divisor.
void DivideBy(float divisor, absl::Span<float> elements);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_ACCUMULATE_H_
