#include "core/device/cuda/kernels/columnwise.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

// Mean and sum of squared deviations of the rows so far. Source: Chan, Golub and LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979.
struct MomentsOperation {
  struct Partial {
    double mean;
    double deviations;
    double count;
  };
  const float* x;

  __device__ static Partial Merge(Partial a, Partial b) {
    if (b.count == 0.0) return a;
    const double count = a.count + b.count, delta = b.mean - a.mean;
    // Rounding of the weights changes a result only by a fraction of its distance.
    const double weight = static_cast<float>(b.count) / static_cast<float>(count);
    return {a.mean + delta * weight, a.deviations + b.deviations + delta * delta * weight * a.count,
            count};
  }

  // The moments of a few values, by two passes over them.
  template <int kPack>
  __device__ static Partial MomentsOf(const Pack<kPack> (&rows)[kRowsAtOnce], int count, int lane) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) sum += rows[k].lane[lane];
    const float mean = sum / static_cast<float>(count);
    float error = 0.0f, deviations = 0.0f;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (k >= count) continue;
      const float deviation = rows[k].lane[lane] - mean;
      error += deviation;
      deviations += deviation * deviation;
    }
    error /= static_cast<float>(count);  // of the mean's rounding
    return {static_cast<double>(mean) + error,
            static_cast<double>(deviations) - static_cast<double>(error) * error * count,
            static_cast<double>(count)};
  }

  template <int kPack>
  __device__ void Add(const ColumnTiling& tiling, int64_t column, int64_t first, int step,
                      int64_t end, Partial (&moments)[kPack]) const {
    for (int64_t row = first; row < end; row += static_cast<int64_t>(kRowsAtOnce) * step) {
      Pack<kPack> rows[kRowsAtOnce] = {};
      int count = 0;
#pragma unroll
      for (int k = 0; k < kRowsAtOnce; ++k) {
        const int64_t at = row + static_cast<int64_t>(k) * step;
        if (at >= end) continue;
        rows[k] = LoadPack<kPack>(x + at * tiling.cols + column);
        ++count;
      }
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        moments[lane] = Merge(moments[lane], MomentsOf(rows, count, lane));
      }
    }
  }
};

struct MomentsSink {
  float* mean;
  float* variance;
  __device__ void operator()(int64_t, int64_t column, MomentsOperation::Partial moments) const {
    mean[column] = static_cast<float>(moments.mean);
    const double deviations = moments.deviations < 0.0 ? 0.0 : moments.deviations;
    // One row has no deviations; 0 * x keeps not-a-number visible.
    variance[column] = static_cast<float>(moments.count > 1.0 ? deviations / (moments.count - 1.0)
                                                              : 0.0 * deviations);
  }
};

// 1 for a null pointer etc.
__device__ float ValueOr(const float* values, int64_t i, float otherwise) {
  return values == nullptr ? otherwise : values[i];
}

// gamma * (x - mean) / sqrt(variance * correction + epsilon) + beta
struct NormalizeOperation {
  static constexpr int kOperands = 1;
  struct Constants {
    float mean;
    float scale;
    float shift;
  };
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  float correction;
  float epsilon;

  __device__ Constants Load(int64_t column) const {
    const float deviation = sqrtf(variance[column] * correction + epsilon);
    return {mean[column], ValueOr(gamma, column, 1.0f) / deviation, ValueOr(beta, column, 0.0f)};
  }
  __device__ float operator()(Constants constants, float x, float) const {
    return (x - constants.mean) * constants.scale + constants.shift;
  }
};

// Sums of dy and of dy * (x - mean).
struct GradientsOperation {
  struct Partial {
    double dy;
    double product;
  };
  const float* x;
  const float* dy;
  const float* mean;

  __device__ static Partial Merge(Partial a, Partial b) {
    return {a.dy + b.dy, a.product + b.product};
  }

  template <int kPack>
  __device__ void Add(const ColumnTiling& tiling, int64_t column, int64_t first, int step,
                      int64_t end, Partial (&sums)[kPack]) const {
    constexpr int kAtOnce = kRowsAtOnce / 2;
    float means[kPack];
    for (int lane = 0; lane < kPack; ++lane) means[lane] = mean[column + lane];
    for (int64_t row = first; row < end; row += static_cast<int64_t>(kAtOnce) * step) {
      Pack<kPack> xs[kAtOnce], dys[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = row + static_cast<int64_t>(k) * step;
        for (int lane = 0; lane < kPack; ++lane) xs[k].lane[lane] = means[lane];
        if (at >= end) continue;
        xs[k] = LoadPack<kPack>(x + at * tiling.cols + column);
        dys[k] = LoadPack<kPack>(dy + at * tiling.cols + column);
      }
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        float dy_sum = 0.0f, product_sum = 0.0f;
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          dy_sum += dys[k].lane[lane];
          product_sum += dys[k].lane[lane] * (xs[k].lane[lane] - means[lane]);
        }
        sums[lane].dy += dy_sum;
        sums[lane].product += product_sum;
      }
    }
  }
};

// 1 / sqrt(biased variance + epsilon)
__device__ float InverseDeviation(const float* variance, int64_t column, float correction,
                                  float epsilon) {
  return 1.0f / sqrtf(variance[column] * correction + epsilon);
}

// The gradients of gamma and beta, and for `dx` the means [2, cols] of dy and of dy * (x - mean) /
// (biased variance + epsilon).
struct GradientsSink {
  const float* variance;
  float correction;
  float epsilon;
  int64_t rows;
  int64_t cols;
  float* dgamma;
  float* dbeta;
  float* means;

  __device__ void operator()(int64_t, int64_t column, GradientsOperation::Partial sums) const {
    const float inverse = InverseDeviation(variance, column, correction, epsilon);
    const double normalized = sums.product * inverse;
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(normalized);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(sums.dy);
    means[column] = static_cast<float>(sums.dy / static_cast<double>(rows));
    means[cols + column] = static_cast<float>(normalized * inverse / static_cast<double>(rows));
  }
};

struct InputGradientOperation {
  static constexpr int kOperands = 2;
  struct Constants {
    float mean;
    float scale;
    float dy_mean;
    float slope;
  };
  const float* gamma;
  const float* mean;
  const float* variance;
  float correction;
  float epsilon;
  int64_t cols;
  const float* means;

  __device__ Constants Load(int64_t column) const {
    return {mean[column],
            ValueOr(gamma, column, 1.0f) * InverseDeviation(variance, column, correction, epsilon),
            means[column], means[cols + column]};
  }
  __device__ float operator()(Constants c, float x, float dy) const {
    return c.scale * (dy - c.dy_mean - (x - c.mean) * c.slope);
  }
};

// The factor from the unbiased variance to the biased one.
float BiasCorrection(const BatchNormGeometry& geometry) {
  return static_cast<float>(static_cast<double>(geometry.rows - 1) /
                            static_cast<double>(geometry.rows));
}

bool IsEmpty(const BatchNormGeometry& geometry) {
  return geometry.rows == 0 || geometry.channels == 0;
}

int64_t MultipleOfFour(int64_t n) { return (n + 3) / 4 * 4; }

}  // namespace

int64_t BatchNormScratch(const BatchNormGeometry& geometry) {
  const int64_t forward =
      ReduceColumnsScratch<MomentsOperation::Partial>(geometry.rows, geometry.channels);
  const int64_t backward =
      MultipleOfFour(2 * geometry.channels) +
      ReduceColumnsScratch<GradientsOperation::Partial>(geometry.rows, geometry.channels);
  return forward > backward ? forward : backward;
}

cudaError_t LaunchBatchNorm(cudaStream_t stream, const BatchNormGeometry& geometry, const float* x,
                            const float* gamma, const float* beta, float* scratch, float* mean,
                            float* variance, float* y) {
  if (IsEmpty(geometry)) return cudaSuccess;
  const cudaError_t error =
      LaunchReduceColumns(stream, geometry.rows, geometry.channels, IsAligned(x, 16),
                          MomentsOperation{x}, scratch, MomentsSink{mean, variance});
  if (error != cudaSuccess) return error;
  const NormalizeOperation normalize = {
      gamma, beta, mean, variance, BiasCorrection(geometry), geometry.epsilon};
  return LaunchMapColumns(stream, geometry.rows, geometry.channels, normalize, x, x, y);
}

cudaError_t LaunchBatchNormBackward(cudaStream_t stream, const BatchNormGeometry& geometry,
                                    const float* x, const float* gamma, const float* mean,
                                    const float* variance, const float* dy, float* scratch,
                                    float* dgamma, float* dbeta, float* dx) {
  if (IsEmpty(geometry)) return cudaSuccess;
  const int64_t rows = geometry.rows, channels = geometry.channels;
  const float correction = BiasCorrection(geometry);
  float* const means = scratch;
  float* const partials = scratch + MultipleOfFour(2 * channels);
  const GradientsSink sink = {variance, correction, geometry.epsilon, rows, channels, dgamma,
                              dbeta,    means};
  const cudaError_t error =
      LaunchReduceColumns(stream, rows, channels, IsAligned(x, 16) && IsAligned(dy, 16),
                          GradientsOperation{x, dy, mean}, partials, sink);
  if (error != cudaSuccess || dx == nullptr) return error;
  const InputGradientOperation gradient = {gamma,    mean, variance, correction, geometry.epsilon,
                                           channels, means};
  return LaunchMapColumns(stream, rows, channels, gradient, x, dy, dx);
}

cudaError_t LaunchBatchNormInference(cudaStream_t stream, const BatchNormGeometry& geometry,
                                     const float* x, const float* gamma, const float* beta,
                                     const float* mean, const float* variance, float* y) {
  if (IsEmpty(geometry)) return cudaSuccess;
  const NormalizeOperation normalize = {gamma, beta, mean, variance, 1.0f, geometry.epsilon};
  return LaunchMapColumns(stream, geometry.rows, geometry.channels, normalize, x, x, y);
}

}  // namespace keelson::cuda
