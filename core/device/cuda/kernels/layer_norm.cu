#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/columnwise.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

// Two values that are reduced at once.
struct Two {
  float a;
  float b;
};

// The threads that share a row: a warp, or a block. Each visits elements thread(), thread() +
// kWidth, ...; Sum adds the values of all of them, in a fixed order.
struct RowWarp {
  static constexpr int kWidth = kWarp;
  static constexpr int kRowsOfBlock = kWarps;

  __device__ int thread() const { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ int64_t first_row() const { return ThreadIndex() / kWarp; }
  __device__ int64_t row_step() const { return ThreadCount() / kWarp; }
  __device__ Two Sum(Two value) const {
    return {WarpReduce(value.a, Plus()), WarpReduce(value.b, Plus())};
  }
};

struct RowBlock {
  static constexpr int kWidth = kThreads;
  static constexpr int kRowsOfBlock = 1;

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int64_t first_row() const { return blockIdx.x; }
  __device__ int64_t row_step() const { return gridDim.x; }
  __device__ Two Sum(Two value) const {
    __shared__ float first[kWarps];
    __shared__ float second[kWarps];
    __syncthreads();  // the last sums have been read
    const float a = BlockReduce(value.a, first, Plus());
    return {a, BlockReduce(value.b, second, Plus())};
  }
};

__device__ inline float ParameterAt(const float* values, int64_t i, float otherwise) {
  return values == nullptr ? otherwise : values[i];
}

// By two passes over the row, after one for a first mean; the passes after the first one find it in
// a cache.
template <typename Threads>
__global__ void __launch_bounds__(kThreads)
    LayerNormKernel(int64_t rows, int64_t features, float epsilon, const float* __restrict__ x,
                    const float* __restrict__ gamma, const float* __restrict__ beta, float* mean,
                    float* inverse_deviation, float* __restrict__ y) {
  const Threads threads;
  const float count = static_cast<float>(features);
  for (int64_t row = threads.first_row(); row < rows; row += threads.row_step()) {
    const float* in = x + row * features;
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threads.thread(); i < features; i += Threads::kWidth) sum += in[i];
    const float near_mean = threads.Sum({sum, 0.0f}).a / count;
    Two deviations = {0.0f, 0.0f};
#pragma unroll 4
    for (int64_t i = threads.thread(); i < features; i += Threads::kWidth) {
      const float deviation = in[i] - near_mean;
      deviations.a += deviation;
      deviations.b += deviation * deviation;
    }
    deviations = threads.Sum(deviations);
    const float error = deviations.a / count;  // of the mean's rounding
    const float variance = deviations.b / count - error * error;
    const float row_mean = near_mean + error;
    const float scale = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
    if (threads.thread() == 0) {
      if (mean != nullptr) mean[row] = row_mean;
      if (inverse_deviation != nullptr) inverse_deviation[row] = scale;
    }
#pragma unroll 4
    for (int64_t i = threads.thread(); i < features; i += Threads::kWidth) {
      y[row * features + i] =
          (in[i] - row_mean) * scale * ParameterAt(gamma, i, 1.0f) + ParameterAt(beta, i, 0.0f);
    }
  }
}

// dx may be dy: a thread writes an element after all of the row has been read.
template <typename Threads>
__global__ void __launch_bounds__(kThreads)
    LayerNormInputGradientKernel(int64_t rows, int64_t features, const float* x, const float* gamma,
                                 const float* mean, const float* inverse_deviation, const float* dy,
                                 float* dx) {
  const Threads threads;
  const float count = static_cast<float>(features);
  for (int64_t row = threads.first_row(); row < rows; row += threads.row_step()) {
    const int64_t first = row * features;
    const float row_mean = mean[row], scale = inverse_deviation[row];
    Two sums = {0.0f, 0.0f};
#pragma unroll 4
    for (int64_t i = threads.thread(); i < features; i += Threads::kWidth) {
      const float gradient = ParameterAt(gamma, i, 1.0f) * dy[first + i];
      sums.a += gradient;
      sums.b += gradient * ((x[first + i] - row_mean) * scale);
    }
    sums = threads.Sum(sums);
    const float offset = sums.a / count, slope = sums.b / count;
#pragma unroll 4
    for (int64_t i = threads.thread(); i < features; i += Threads::kWidth) {
      const float gradient = ParameterAt(gamma, i, 1.0f) * dy[first + i];
      dx[first + i] = scale * (gradient - offset - (x[first + i] - row_mean) * scale * slope);
    }
  }
}

// Sums of dy * (normalized x) and of dy.
struct LayerNormParametersOperation {
  struct Partial {
    double gamma;
    double beta;
  };
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse_deviation;

  __device__ static Partial Merge(Partial a, Partial b) {
    return {a.gamma + b.gamma, a.beta + b.beta};
  }

  template <int kPack>
  __device__ void Add(const ColumnTiling& tiling, int64_t column, int64_t first, int step,
                      int64_t end, Partial (&sums)[kPack]) const {
    constexpr int kAtOnce = kRowsAtOnce / 2;
    for (int64_t row = first; row < end; row += static_cast<int64_t>(kAtOnce) * step) {
      Pack<kPack> xs[kAtOnce] = {}, dys[kAtOnce] = {};
      float means[kAtOnce] = {}, scales[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = row + static_cast<int64_t>(k) * step;
        if (at >= end) continue;
        xs[k] = LoadPack<kPack>(x + at * tiling.cols + column);
        dys[k] = LoadPack<kPack>(dy + at * tiling.cols + column);
        means[k] = mean[at];
        scales[k] = inverse_deviation[at];
      }
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        float gamma = 0.0f, beta = 0.0f;
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          gamma += dys[k].lane[lane] * ((xs[k].lane[lane] - means[k]) * scales[k]);
          beta += dys[k].lane[lane];
        }
        sums[lane].gamma += gamma;
        sums[lane].beta += beta;
      }
    }
  }
};

struct LayerNormParametersSink {
  float* dgamma;
  float* dbeta;
  __device__ void operator()(int64_t, int64_t column,
                             LayerNormParametersOperation::Partial sums) const {
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(sums.gamma);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(sums.beta);
  }
};

// Features of a row that is left to a warp, at most.
constexpr int64_t kMostOfWarp = 1024;

}  // namespace

cudaError_t LaunchLayerNorm(cudaStream_t stream, const LayerNormGeometry& geometry, const float* x,
                            const float* gamma, const float* beta, float* mean,
                            float* inverse_deviation, float* y) {
  const int64_t rows = geometry.rows, features = geometry.features;
  if (rows == 0 || features == 0) return cudaSuccess;
  const auto launch = [&](auto* kernel, int64_t rows_of_block) {
    return Launch(kernel, BlocksFor(rows, rows_of_block), stream, rows, features, geometry.epsilon,
                  x, gamma, beta, mean, inverse_deviation, y);
  };
  return features <= kMostOfWarp ? launch(LayerNormKernel<RowWarp>, RowWarp::kRowsOfBlock)
                                 : launch(LayerNormKernel<RowBlock>, RowBlock::kRowsOfBlock);
}

int64_t LayerNormScratch(const LayerNormGeometry& geometry) {
  return ReduceColumnsScratch<LayerNormParametersOperation::Partial>(geometry.rows,
                                                                     geometry.features);
}

cudaError_t LaunchLayerNormBackward(cudaStream_t stream, const LayerNormGeometry& geometry,
                                    const float* x, const float* gamma, const float* mean,
                                    const float* inverse_deviation, const float* dy, float* scratch,
                                    float* dgamma, float* dbeta, float* dx) {
  const int64_t rows = geometry.rows, features = geometry.features;
  if (features == 0) return cudaSuccess;
  if (rows == 0) {
    for (float* gradient : {dgamma, dbeta}) {
      if (gradient == nullptr) continue;
      const cudaError_t error = LaunchFill(stream, 0.0f, features, gradient);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  // Before dx, which may replace dy.
  if (dgamma != nullptr || dbeta != nullptr) {
    const cudaError_t error =
        LaunchReduceColumns(stream, rows, features, IsAligned(x, 16) && IsAligned(dy, 16),
                            LayerNormParametersOperation{x, dy, mean, inverse_deviation}, scratch,
                            LayerNormParametersSink{dgamma, dbeta});
    if (error != cudaSuccess) return error;
  }
  if (dx == nullptr) return cudaSuccess;
  const auto launch = [&](auto* kernel, int64_t rows_of_block) {
    return Launch(kernel, BlocksFor(rows, rows_of_block), stream, rows, features, x, gamma, mean,
                  inverse_deviation, dy, dx);
  };
  return features <= kMostOfWarp
             ? launch(LayerNormInputGradientKernel<RowWarp>, RowWarp::kRowsOfBlock)
             : launch(LayerNormInputGradientKernel<RowBlock>, RowBlock::kRowsOfBlock);
}

}  // namespace keelson::cuda
