#include "core/device/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace keelson {
namespace {

using Doubles = std::vector<double>;

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallelElements = 1 << 17;

bool Parallel(const BatchNormGeometry& g) { return g.rows * g.channels >= kMinParallelElements; }

// Two sums of each channel.
struct Sums {
  explicit Sums(int64_t channels) : first(channels), second(channels) {}
  Doubles first, second;
};

// Calls add_row(row, first, second), which adds a row to both sums, for all rows. Sums blocks of
// rows, then the blocks.
template <typename F>
Sums SumOverRows(const BatchNormGeometry& g, F add_row) {
  constexpr int64_t kBlockRows = 1024;
  const int64_t blocks = (g.rows + kBlockRows - 1) / kBlockRows;
  std::vector<Sums> partial(blocks, Sums(g.channels));
#pragma omp parallel for schedule(static) if (Parallel(g))
  for (int64_t block = 0; block < blocks; ++block) {
    Sums& sums = partial[block];
    const int64_t end = std::min(g.rows, (block + 1) * kBlockRows);
    for (int64_t row = block * kBlockRows; row < end; ++row) {
      add_row(row, sums.first.data(), sums.second.data());
    }
  }
  Sums total(g.channels);
  for (const Sums& sums : partial) {
    for (size_t c = 0; c < total.first.size(); ++c) {
      total.first[c] += sums.first[c];
      total.second[c] += sums.second[c];
    }
  }
  return total;
}

// Calls write_row(row) for all rows.
template <typename F>
void ForEachRow(const BatchNormGeometry& g, F write_row) {
#pragma omp parallel for schedule(static) if (Parallel(g))
  for (int64_t row = 0; row < g.rows; ++row) write_row(row);
}

double InverseDeviation(const BatchNormGeometry& g, double biased_variance) {
  return 1.0 / std::sqrt(biased_variance + double{g.epsilon});
}

// From an unbiased variance to a biased one.
double BiasedShare(const BatchNormGeometry& g) {
  return g.rows == 0 ? 1.0 : static_cast<double>(g.rows - 1) / static_cast<double>(g.rows);
}

// y = (x - mean) * scale + beta
void Normalize(const BatchNormGeometry& g, const float* x, const float* mean,
               const std::vector<float>& scale, const float* beta, float* y) {
  const std::vector<float> zeros(beta == nullptr ? scale.size() : 0, 0.0f);
  const float* offset = beta == nullptr ? zeros.data() : beta;
  const float* factor = scale.data();
  ForEachRow(g, [&](int64_t row) {
    const float* in = x + row * g.channels;
    float* out = y + row * g.channels;
#pragma omp simd
    for (int64_t c = 0; c < g.channels; ++c) out[c] = (in[c] - mean[c]) * factor[c] + offset[c];
  });
}

float ScaleOf(const float* gamma, size_t channel, double inverse_deviation) {
  return static_cast<float>(inverse_deviation * (gamma == nullptr ? 1.0 : double{gamma[channel]}));
}

}  // namespace

void BatchNormForward(const BatchNormGeometry& g, const float* x, const float* gamma,
                      const float* beta, float* mean, float* variance, float* y) {
  // The sums are of differences from the first row, so that a large mean does not hide the
  // variance.
  const Sums sums = SumOverRows(g, [&](int64_t row, double* sum, double* squares) {
    const float* in = x + row * g.channels;
#pragma omp simd
    for (int64_t c = 0; c < g.channels; ++c) {
      const double difference = double{in[c]} - double{x[c]};
      sum[c] += difference;
      squares[c] += difference * difference;
    }
  });
  const auto rows = static_cast<double>(std::max<int64_t>(g.rows, 1));
  std::vector<float> scale(sums.first.size());
  for (size_t c = 0; c < scale.size(); ++c) {
    const double mean_difference = sums.first[c] / rows;
    mean[c] = g.rows == 0 ? 0.0f : static_cast<float>(double{x[c]} + mean_difference);
    const double squares = std::max(sums.second[c] - mean_difference * sums.first[c], 0.0);
    variance[c] = static_cast<float>(squares / std::max(rows - 1, 1.0));
    scale[c] = ScaleOf(gamma, c, InverseDeviation(g, squares / rows));
  }
  Normalize(g, x, mean, scale, beta, y);
}

void BatchNormGradients(const BatchNormGeometry& g, const float* x, const float* gamma,
                        const float* mean, const float* variance, const float* dy, float* dgamma,
                        float* dbeta, float* dx) {
  // The sums of dy, and of dy * (x - mean).
  const Sums sums = SumOverRows(g, [&](int64_t row, double* sum, double* products) {
    const float* in = x + row * g.channels;
    const float* gradient = dy + row * g.channels;
#pragma omp simd
    for (int64_t c = 0; c < g.channels; ++c) {
      sum[c] += double{gradient[c]};
      products[c] += double{gradient[c]} * (double{in[c]} - double{mean[c]});
    }
  });
  const auto rows = static_cast<double>(std::max<int64_t>(g.rows, 1));
  const size_t channels = sums.first.size();
  // dx = scale * (dy - offset - slope * (x - mean))
  std::vector<float> scale(channels), offset(channels), slope(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double inverse = InverseDeviation(g, double{variance[c]} * BiasedShare(g));
    if (dgamma != nullptr) dgamma[c] = static_cast<float>(sums.second[c] * inverse);
    if (dbeta != nullptr) dbeta[c] = static_cast<float>(sums.first[c]);
    scale[c] = ScaleOf(gamma, c, inverse);
    offset[c] = static_cast<float>(sums.first[c] / rows);
    slope[c] = static_cast<float>(sums.second[c] * inverse * inverse / rows);
  }
  if (dx == nullptr) return;
  ForEachRow(g, [&](int64_t row) {
    const float* in = x + row * g.channels;
    const float* gradient = dy + row * g.channels;
    float* out = dx + row * g.channels;
    const float *factor = scale.data(), *shift = offset.data(), *tilt = slope.data();
#pragma omp simd
    for (int64_t c = 0; c < g.channels; ++c) {
      out[c] = factor[c] * (gradient[c] - shift[c] - tilt[c] * (in[c] - mean[c]));
    }
  });
}

void BatchNormWithStatistics(const BatchNormGeometry& g, const float* x, const float* gamma,
                             const float* beta, const float* mean, const float* variance,
                             float* y) {
  std::vector<float> scale(g.channels);
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] = ScaleOf(gamma, c, InverseDeviation(g, double{variance[c]}));
  }
  Normalize(g, x, mean, scale, beta, y);
}

}  // namespace keelson
