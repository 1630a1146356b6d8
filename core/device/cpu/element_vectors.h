// Elementwise operations that memory bounds, on one thread, with the widest vectors of the
// processor. All instruction sets give the same bits.
#ifndef KEELSON_CORE_DEVICE_CPU_ELEMENT_VECTORS_H_
#define KEELSON_CORE_DEVICE_CPU_ELEMENT_VECTORS_H_

#include <cstdint>

namespace keelson {

// y may be a or b.
void AddVectors(int64_t n, const float* a, const float* b, float* y);
void MultiplyVectors(int64_t n, const float* a, const float* b, float* y);
void ScaleVectors(float alpha, int64_t n, float* x);
// Not-a-number stays. y may be x.
void ReluVectors(int64_t n, const float* x, float* y);
// dx = y > 0 ? dy : 0. dx may be dy.
void ReluGradientVectors(int64_t n, const float* y, const float* dy, float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_ELEMENT_VECTORS_H_
