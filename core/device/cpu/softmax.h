// Softmax on host arrays, as core/device/device.h describes it. Threads: OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_SOFTMAX_H_
#define KEELSON_CORE_DEVICE_CPU_SOFTMAX_H_

#include <cstdint>

namespace keelson {

void SoftmaxForward(int64_t rows, int64_t columns, const float* x, float* y);
void SoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* dy, float* dx);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_SOFTMAX_H_
