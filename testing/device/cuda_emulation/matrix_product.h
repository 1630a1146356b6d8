// Matrix products as cuBLAS defines them, on the CPU.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_MATRIX_PRODUCT_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_MATRIX_PRODUCT_H_

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>

namespace keelson::cuda_emulation {

// Column by column: element (i, j) lies at data[j * ld + i].
struct Matrix {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;

  // From its first to its last element.
  size_t bytes() const;
};

// d [m, n] = alpha * op(a) op(b) + beta * c, on operands that are rounded as `compute` says, with
// sums in float32; then the bias [m] and ReLU; or beside it the sums of op(a)'s rows [m] or of
// op(b)'s columns [n].
struct Product {
  Matrix a, b, c, d;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  const float* bias = nullptr;
  bool relu = false;
  float* row_sums = nullptr;
  float* column_sums = nullptr;

  int64_t m() const { return d.rows; }
  int64_t n() const { return d.cols; }
  int64_t k() const { return transpose_a ? a.rows : a.cols; }
  // Whether the extents fit together, the leading dimensions are large enough, the types belong
  // together, and what is used is aligned to its elements.
  bool Consistent() const;
};

void Multiply(const Product& product);

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_MATRIX_PRODUCT_H_
