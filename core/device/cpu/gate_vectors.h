// Exponentials and what is made of them, GELU and SiLU, on one thread, with the widest vectors of
// the processor. All instruction sets give the same bits. Not-a-number stays.
#ifndef KEELSON_CORE_DEVICE_CPU_GATE_VECTORS_H_
#define KEELSON_CORE_DEVICE_CPU_GATE_VECTORS_H_

#include <cstdint>

namespace keelson {

// y = exp(x - highest), where no x is greater than `highest`, within two units in the last place;
// 0 where that is below the least normal number. y may be x.
void ExponentialVectors(int64_t n, float highest, const float* x, float* y);

// y = x times the standard normal distribution's probability of a number below x. Relative error:
// 5e-7 for x > -1; below, where the probability is small, up to 1e-6 times x^2. y may be x.
void GeluVectors(int64_t n, const float* x, float* y);
// dx = dy times the derivative. dx may be dy.
void GeluGradientVectors(int64_t n, const float* x, const float* dy, float* dx);

// y = x / (1 + exp(-x)). y may be x.
void SiluVectors(int64_t n, const float* x, float* y);
// dx = dy times the derivative. dx may be dy.
void SiluGradientVectors(int64_t n, const float* x, const float* dy, float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_GATE_VECTORS_H_
