// Operations on the rows of host arrays, as core/device/device.h describes them, with the widest
// vectors of the processor. Threads: OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_ROWWISE_H_
#define KEELSON_CORE_DEVICE_CPU_ROWWISE_H_

#include <cstdint>

#include "core/device/geometry.h"

namespace keelson {

void ScaleEachRow(int64_t rows, int64_t columns, const float* factors, float* x);
void AddToEachRow(int64_t rows, int64_t columns, float alpha, const float* v, float* x);
void DotEachRow(int64_t rows, int64_t columns, float alpha, const float* a, const float* b,
                float beta, float* y);
void AddEachRowScaled(int64_t rows, int64_t columns, float alpha, const float* factors,
                      const float* x, float beta, float* y);

void DotPairs(const PairGeometry& geometry, const float* x, float* y);
void DotPairsBackward(const PairGeometry& geometry, const float* x, const float* dy, float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_ROWWISE_H_
