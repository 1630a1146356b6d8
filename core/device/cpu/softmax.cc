#include "core/device/cpu/softmax.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/device/cpu/gate_vectors.h"

namespace keelson {
namespace {

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallelSoftmax = 1 << 15;

// Sums and maxima of as many interleaved parts, so that one does not wait for the one before; the
// order does not depend on the processor.
constexpr int64_t kParts = 16;

float HighestOf(int64_t n, const float* x) {
  float highest[kParts];
  std::fill_n(highest, kParts, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
#pragma omp simd
    for (int64_t k = 0; k < kParts; ++k) highest[k] = x[i + k] > highest[k] ? x[i + k] : highest[k];
  }
  for (; i < n; ++i) highest[0] = std::max(highest[0], x[i]);
  return *std::max_element(highest, highest + kParts);
}

// The sum of f(i) for i from 0 to n - 1.
template <typename F>
double SumOf(int64_t n, F f) {
  double sums[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
#pragma omp simd
    for (int64_t k = 0; k < kParts; ++k) sums[k] += f(i + k);
  }
  for (; i < n; ++i) sums[0] += f(i);
  return std::accumulate(sums, sums + kParts, 0.0);
}

void SoftmaxOfRow(int64_t columns, const float* x, float* y) {
  ExponentialVectors(columns, HighestOf(columns, x), x, y);
  const double sum = SumOf(columns, [=](int64_t i) { return double{y[i]}; });
  const auto scale = static_cast<float>(1 / sum);
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) y[i] *= scale;
}

void SoftmaxGradientOfRow(int64_t columns, const float* y, const float* dy, float* dx) {
  const auto mean =
      static_cast<float>(SumOf(columns, [=](int64_t i) { return double{y[i]} * dy[i]; }));
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) dx[i] = y[i] * (dy[i] - mean);
}

template <typename F>
void ForEachRowOf(int64_t rows, int64_t columns, F f) {
  if (columns == 0) return;
#pragma omp parallel for schedule(static) if (rows * columns >= kMinParallelSoftmax)
  for (int64_t row = 0; row < rows; ++row) f(row * columns);
}

}  // namespace

void SoftmaxForward(int64_t rows, int64_t columns, const float* x, float* y) {
  ForEachRowOf(rows, columns, [=](int64_t first) { SoftmaxOfRow(columns, x + first, y + first); });
}

void SoftmaxGradient(int64_t rows, int64_t columns, const float* y, const float* dy, float* dx) {
  ForEachRowOf(rows, columns, [=](int64_t first) {
    SoftmaxGradientOfRow(columns, y + first, dy + first, dx + first);
  });
}

}  // namespace keelson
