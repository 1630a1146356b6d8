#include "core/device/cpu/softmax.h"

#include <algorithm>
#include <cmath>

namespace keelson {
namespace {

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallelSoftmax = 1 << 15;

void SoftmaxOfRow(int64_t columns, const float* x, float* y) {
  const float highest = *std::max_element(x, x + columns);
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) {
    y[i] = std::exp(x[i] - highest);
    sum += y[i];
  }
  const auto scale = static_cast<float>(1 / sum);
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) y[i] *= scale;
}

void SoftmaxGradientOfRow(int64_t columns, const float* y, const float* dy, float* dx) {
  double product = 0;
  for (int64_t i = 0; i < columns; ++i) product += double{y[i]} * dy[i];
  const auto mean = static_cast<float>(product);
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
