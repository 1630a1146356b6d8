// The product of a matrix of few entries and a dense matrix, as Device::MultiplySparse describes
// it, on host arrays. Threads: OpenMP's, which share the stored rows by their entries; the entries
// of one row are one thread's work, however many they are.
#ifndef KEELSON_CORE_DEVICE_CPU_SPARSE_PRODUCT_H_
#define KEELSON_CORE_DEVICE_CPU_SPARSE_PRODUCT_H_

#include <cstdint>

namespace keelson {

// The arrays of SparseRows in the host's memory.
struct HostSparseRows {
  int64_t stored;
  const int32_t* rows;
  const int32_t* offsets;
  const int32_t* columns;
  const float* coefficients;
};

void MultiplySparseRows(const HostSparseRows& a, int64_t width, const float* x, float beta,
                        float* y);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_SPARSE_PRODUCT_H_
