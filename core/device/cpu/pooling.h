// Max and average pooling on host arrays [batch, height, width, channels]. A window's padding takes
// no part. Threads: OpenMP's, one example at a time.
#ifndef KEELSON_CORE_DEVICE_CPU_POOLING_H_
#define KEELSON_CORE_DEVICE_CPU_POOLING_H_

#include "core/device/geometry.h"

namespace keelson {

void MaxPoolForward(const PoolGeometry& geometry, const float* x, float* y);
// Each dy goes to the first x of its window, row by row, that equals y.
void MaxPoolBackward(const PoolGeometry& geometry, const float* x, const float* y, const float* dy,
                     float* dx);
void AvgPoolForward(const PoolGeometry& geometry, const float* x, float* y);
void AvgPoolBackward(const PoolGeometry& geometry, const float* dy, float* dx);

// The order of the additions does not depend on the number of threads.
void GlobalAverage(int64_t rows, int64_t positions, int64_t channels, const float* x, float* y);
void GlobalAverageGradient(int64_t rows, int64_t positions, int64_t channels, const float* dy,
                           float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_POOLING_H_
