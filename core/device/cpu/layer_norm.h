// Layer normalization on host arrays, as core/device/device.h describes it; gamma and beta may be
// null. The order of the additions does not depend on the number of threads. Threads: OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_LAYER_NORM_H_
#define KEELSON_CORE_DEVICE_CPU_LAYER_NORM_H_

#include "core/device/geometry.h"

namespace keelson {

// mean and inverse_deviation may be null.
void LayerNormForward(const LayerNormGeometry& geometry, const float* x, const float* gamma,
                      const float* beta, float* mean, float* inverse_deviation, float* y);
// dgamma, dbeta and dx may be null; dx may be dy.
void LayerNormGradients(const LayerNormGeometry& geometry, const float* x, const float* gamma,
                        const float* mean, const float* inverse_deviation, const float* dy,
                        float* dgamma, float* dbeta, float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_LAYER_NORM_H_
