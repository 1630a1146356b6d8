// Sums over host arrays, in double precision. The order of the additions does not depend on the
// number of threads. Threads: OpenMP's.
#ifndef KEELSON_CORE_DEVICE_CPU_REDUCTIONS_H_
#define KEELSON_CORE_DEVICE_CPU_REDUCTIONS_H_

#include <cstdint>

namespace keelson {

double SumOf(int64_t n, const float* x);
double SumOfSquares(int64_t n, const float* x);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_REDUCTIONS_H_
