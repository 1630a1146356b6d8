// Element-wise operations on host arrays, as core/device/device.h describes them. Threads:
// OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_ELEMENTWISE_H_
#define KEELSON_CORE_DEVICE_CPU_ELEMENTWISE_H_

#include <cstdint>
#include <optional>

#include "core/device/geometry.h"

namespace keelson {

// Adds `bias` [cols], unless it is null, to each row of y [rows, cols], then applies the
// activation.
void AddBiasAndActivate(int64_t rows, int64_t cols, const float* bias,
                        std::optional<ActivationKind> activation, float* y);
// Sums blocks of rows, then the blocks: the order does not depend on the number of threads.
void SumRows(int64_t rows, int64_t cols, const float* dy, float* sums);
void AddScaledTo(float alpha, int64_t n, const float* x, float* y);
void ScaleBy(float alpha, int64_t n, float* x);
// y may be a or b.
void SumOfTwo(int64_t n, const float* a, const float* b, float* y);
void ProductOfTwo(int64_t n, const float* a, const float* b, float* y);
void InverseSquareRoots(int64_t n, float epsilon, const float* x, float* y);
// `from` and `to` are the blocks' first elements, in matrices of so many columns.
void CopyBlock(int64_t rows, int64_t columns, const float* from, int64_t from_columns, float* to,
               int64_t to_columns);
void TransposeAxes(const TransposeGeometry& geometry, const float* x, float* y);
void ActivationForward(ActivationKind kind, int64_t n, const float* x, float* y);
void ActivationBackward(ActivationKind kind, int64_t n, const float* y, const float* dy, float* dx);
void GateForward(GateKind kind, int64_t n, const float* x, float* y);
void GateGradient(GateKind kind, int64_t n, const float* x, const float* dy, float* dx);
void DropoutForward(float rate, uint64_t seed, uint64_t stream, int64_t n, const float* x,
                    float* y);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_ELEMENTWISE_H_
