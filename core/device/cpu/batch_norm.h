// Batch normalization on host arrays, as core/device/device.h describes it; gamma and beta may be
// null. The order of the additions does not depend on the number of threads. Threads: OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_BATCH_NORM_H_
#define KEELSON_CORE_DEVICE_CPU_BATCH_NORM_H_

#include "core/device/geometry.h"

namespace keelson {

// The statistics of no rows are 0.
void BatchNormForward(const BatchNormGeometry& geometry, const float* x, const float* gamma,
                      const float* beta, float* mean, float* variance, float* y);
// dgamma, dbeta and dx may be null.
void BatchNormGradients(const BatchNormGeometry& geometry, const float* x, const float* gamma,
                        const float* mean, const float* variance, const float* dy, float* dgamma,
                        float* dbeta, float* dx);
void BatchNormWithStatistics(const BatchNormGeometry& geometry, const float* x, const float* gamma,
                             const float* beta, const float* mean, const float* variance, float* y);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_BATCH_NORM_H_
