#include "testing/device/cuda_emulation/matrix_product.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace keelson::cuda_emulation {
namespace {

size_t SizeOf(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

// To nearest, ties to even, leaving out `dropped` bits of the mantissa.
float Rounded(float value, int dropped) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return value;
  const uint32_t last = bits >> dropped & 1;
  bits += (uint32_t{1} << (dropped - 1)) - 1 + last;
  return std::bit_cast<float>(bits >> dropped << dropped);
}

float Operand(const Matrix& matrix, cublasComputeType_t compute, int64_t row, int64_t col) {
  const int64_t at = col * matrix.ld + row;
  if (matrix.type == CUDA_R_16BF) {
    return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(matrix.data)[at]} << 16);
  }
  const float value = static_cast<const float*>(matrix.data)[at];
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return Rounded(value, 13);
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return Rounded(value, 16);
  return value;
}

// op(matrix), column by column without gaps.
std::vector<float> Operands(const Matrix& matrix, bool transpose, cublasComputeType_t compute) {
  const int64_t rows = transpose ? matrix.cols : matrix.rows;
  const int64_t cols = transpose ? matrix.rows : matrix.cols;
  std::vector<float> values(rows * cols);
  float* to = values.data();
  for (int64_t col = 0; col < cols; ++col) {
    for (int64_t row = 0; row < rows; ++row) {
      *to++ = transpose ? Operand(matrix, compute, col, row) : Operand(matrix, compute, row, col);
    }
  }
  return values;
}

void AddMultiple(int64_t n, float factor, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

void StoreColumn(const Product& product, int64_t col, const float* sums) {
  const float* const c = static_cast<const float*>(product.c.data) + col * product.c.ld;
  float* const d = static_cast<float*>(const_cast<void*>(product.d.data)) + col * product.d.ld;
  for (int64_t row = 0; row < product.m(); ++row) {
    float value = product.alpha * sums[row];
    if (product.beta != 0) value += product.beta * c[row];
    if (product.bias != nullptr) value += product.bias[row];
    // NaN becomes 0, as with some of the real algorithms.
    if (product.relu && !(value > 0)) value = 0;
    d[row] = value;
  }
}

bool Aligned(const void* data, size_t bytes) {
  return data != nullptr && reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

bool Valid(const Matrix& matrix) {
  return matrix.rows > 0 && matrix.cols > 0 && matrix.ld >= matrix.rows &&
         Aligned(matrix.data, SizeOf(matrix.type));
}

}  // namespace

size_t Matrix::bytes() const { return ((cols - 1) * ld + rows) * SizeOf(type); }

bool Product::Consistent() const {
  const int64_t rows_of_b = transpose_b ? b.cols : b.rows;
  const int64_t cols_of_b = transpose_b ? b.rows : b.cols;
  const int64_t rows_of_a = transpose_a ? a.cols : a.rows;
  return Valid(a) && Valid(b) && Valid(d) && (beta == 0 || Valid(c)) && rows_of_a == m() &&
         rows_of_b == k() && cols_of_b == n() && c.rows == m() && c.cols == n() &&
         a.type == b.type && c.type == CUDA_R_32F && d.type == CUDA_R_32F;
}

void Multiply(const Product& product) {
  const int64_t m = product.m(), n = product.n(), k = product.k();
  const std::vector<float> a = Operands(product.a, product.transpose_a, product.compute);
  const std::vector<float> b = Operands(product.b, product.transpose_b, product.compute);
  std::vector<float> sums(m);
  if (product.row_sums != nullptr) {
    for (int64_t i = 0; i < k; ++i) AddMultiple(m, 1, &a[i * m], sums.data());
    std::copy(sums.begin(), sums.end(), product.row_sums);
  }
  for (int64_t col = 0; col < n; ++col) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    const float* const factors = &b[col * k];
    for (int64_t i = 0; i < k; ++i) {
      AddMultiple(m, factors[i], &a[i * m], sums.data());
    }
    if (product.column_sums != nullptr) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += factors[i];
      product.column_sums[col] = sum;
    }
    StoreColumn(product, col, sums.data());
  }
}

}  // namespace keelson::cuda_emulation
