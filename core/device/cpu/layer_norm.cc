#include "core/device/cpu/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace keelson {
namespace {

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallelLayerNorm = 1 << 16;
// Rows whose terms of the parameters' gradients are added up before those of other rows.
constexpr int64_t kLayerNormBlock = 64;

struct RowStatistics {
  float mean;
  float inverse_deviation;
};

// The sums are of differences from the first element, so that a large mean does not hide the
// variance.
RowStatistics StatisticsOfRow(const LayerNormGeometry& g, const float* x) {
  const double first = x[0];
  double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
  for (int64_t i = 0; i < g.features; ++i) {
    const double difference = x[i] - first;
    sum += difference;
    squares += difference * difference;
  }
  const auto features = static_cast<double>(g.features);
  const double mean = sum / features;
  const double squared_deviations = squares - mean * sum;
  // Rounding may make it negative; not-a-number stays visible.
  const double variance = squared_deviations < 0 ? 0.0 : squared_deviations / features;
  return {static_cast<float>(first + mean),
          static_cast<float>(1.0 / std::sqrt(variance + double{g.epsilon}))};
}

// y = (x - mean) * inverse_deviation * gamma + beta
void NormalizeRow(const LayerNormGeometry& g, const float* x, RowStatistics statistics,
                  const float* gamma, const float* beta, float* y) {
  const float mean = statistics.mean, scale = statistics.inverse_deviation;
#pragma omp simd
  for (int64_t i = 0; i < g.features; ++i) y[i] = (x[i] - mean) * scale;
  if (gamma != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < g.features; ++i) y[i] *= gamma[i];
  }
  if (beta != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < g.features; ++i) y[i] += beta[i];
  }
}

// Adds a row's terms of the gradients of gamma and beta.
void AddParameterGradients(const LayerNormGeometry& g, const float* x, RowStatistics statistics,
                           const float* dy, double* dgamma, double* dbeta) {
  const float mean = statistics.mean, scale = statistics.inverse_deviation;
#pragma omp simd
  for (int64_t i = 0; i < g.features; ++i) {
    dgamma[i] += double{dy[i]} * ((x[i] - mean) * scale);
    dbeta[i] += double{dy[i]};
  }
}

void ParameterGradients(const LayerNormGeometry& g, const float* x, const float* mean,
                        const float* inverse_deviation, const float* dy, float* dgamma,
                        float* dbeta) {
  const int64_t blocks = (g.rows + kLayerNormBlock - 1) / kLayerNormBlock;
  // Each block has the terms of gamma here, then those of beta.
  std::vector<double> partial(2 * blocks * g.features, 0.0);
#pragma omp parallel for schedule(static) if (g.rows * g.features >= kMinParallelLayerNorm)
  for (int64_t block = 0; block < blocks; ++block) {
    double* const sums = partial.data() + 2 * block * g.features;
    const int64_t end = std::min(g.rows, (block + 1) * kLayerNormBlock);
    for (int64_t row = block * kLayerNormBlock; row < end; ++row) {
      AddParameterGradients(g, x + row * g.features, {mean[row], inverse_deviation[row]},
                            dy + row * g.features, sums, sums + g.features);
    }
  }
  std::vector<double> sums(2 * g.features, 0.0);
  for (int64_t block = 0; block < blocks; ++block) {
    const double* const terms = partial.data() + 2 * block * g.features;
#pragma omp simd
    for (int64_t i = 0; i < 2 * g.features; ++i) sums[i] += terms[i];
  }
  for (int64_t i = 0; i < g.features; ++i) {
    if (dgamma != nullptr) dgamma[i] = static_cast<float>(sums[i]);
    if (dbeta != nullptr) dbeta[i] = static_cast<float>(sums[g.features + i]);
  }
}

// dx = inverse_deviation * (g - mean of g - xhat * mean of g * xhat), where g is gamma * dy and
// xhat the normalized x. dx may be dy.
void InputGradientOfRow(const LayerNormGeometry& g, const float* x, RowStatistics statistics,
                        const float* gamma, const float* dy, float* dx) {
  const float mean = statistics.mean, scale = statistics.inverse_deviation;
  double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t i = 0; i < g.features; ++i) {
    const double gradient = double{gamma[i]} * dy[i];
    sum += gradient;
    product += gradient * ((x[i] - mean) * scale);
  }
  const auto features = static_cast<double>(g.features);
  const auto offset = static_cast<float>(sum / features);
  const auto slope = static_cast<float>(product / features);
#pragma omp simd
  for (int64_t i = 0; i < g.features; ++i) {
    dx[i] = scale * (gamma[i] * dy[i] - offset - (x[i] - mean) * scale * slope);
  }
}

}  // namespace

void LayerNormForward(const LayerNormGeometry& g, const float* x, const float* gamma,
                      const float* beta, float* mean, float* inverse_deviation, float* y) {
  if (g.features == 0) return;
#pragma omp parallel for schedule(static) if (g.rows * g.features >= kMinParallelLayerNorm)
  for (int64_t row = 0; row < g.rows; ++row) {
    const float* in = x + row * g.features;
    const RowStatistics statistics = StatisticsOfRow(g, in);
    if (mean != nullptr) mean[row] = statistics.mean;
    if (inverse_deviation != nullptr) inverse_deviation[row] = statistics.inverse_deviation;
    NormalizeRow(g, in, statistics, gamma, beta, y + row * g.features);
  }
}

void LayerNormGradients(const LayerNormGeometry& g, const float* x, const float* gamma,
                        const float* mean, const float* inverse_deviation, const float* dy,
                        float* dgamma, float* dbeta, float* dx) {
  // Before dx, which may replace dy.
  if (dgamma != nullptr || dbeta != nullptr) {
    ParameterGradients(g, x, mean, inverse_deviation, dy, dgamma, dbeta);
  }
  if (dx == nullptr) return;
  const std::vector<float> ones(gamma == nullptr ? g.features : 0, 1.0f);
  const float* const factors = gamma == nullptr ? ones.data() : gamma;
#pragma omp parallel for schedule(static) if (g.rows * g.features >= kMinParallelLayerNorm)
  for (int64_t row = 0; row < g.rows; ++row) {
    const int64_t first = row * g.features;
    InputGradientOfRow(g, x + first, {mean[row], inverse_deviation[row]}, factors, dy + first,
                       dx + first);
  }
}

}  // namespace keelson
