#include "core/device/cuda/kernels/columnwise.h"
#include "core/device/cuda/kernels/element_math.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

template <ActivationKind kKind>
struct Activation {
  __device__ float operator()(float x) const { return Activated(kKind, x); }
};

template <typename Function>
struct BiasOperation {
  static constexpr int kOperands = 1;
  struct Constants {
    float bias;
  };
  const float* bias;  // may be null

  __device__ Constants Load(int64_t column) const {
    return {bias == nullptr ? 0.0f : bias[column]};
  }
  __device__ float operator()(Constants constants, float x, float) const {
    return Function()(x + constants.bias);
  }
};

// Eight rows at a time in float32, those sums in float64.
struct SumOperation {
  struct Partial {
    double sum;
  };
  const float* x;

  __device__ static Partial Merge(Partial a, Partial b) { return {a.sum + b.sum}; }

  template <int kPack>
  __device__ void Add(const ColumnTiling& tiling, int64_t column, int64_t first, int step,
                      int64_t end, Partial (&sums)[kPack]) const {
    for (int64_t row = first; row < end; row += static_cast<int64_t>(kRowsAtOnce) * step) {
      Pack<kPack> rows[kRowsAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kRowsAtOnce; ++k) {
        const int64_t at = row + static_cast<int64_t>(k) * step;
        if (at < end) rows[k] = LoadPack<kPack>(x + at * tiling.cols + column);
      }
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < kRowsAtOnce; ++k) sum += rows[k].lane[lane];
        sums[lane].sum += sum;
      }
    }
  }
};

struct SumSink {
  float* sums;
  __device__ void operator()(int64_t, int64_t column, SumOperation::Partial partial) const {
    sums[column] = static_cast<float>(partial.sum);
  }
};

// Chunk c is row `first_row` + c of a pool.
struct AverageSink {
  float* y;
  int64_t first_row;
  int64_t positions;
  int64_t channels;
  __device__ void operator()(int64_t chunk, int64_t column, SumOperation::Partial partial) const {
    y[(first_row + chunk) * channels + column] =
        static_cast<float>(partial.sum / static_cast<double>(positions));
  }
};

// Each chunk's rows become `gradient` of that chunk, times `share`.
template <int kPack>
__global__ void __launch_bounds__(kThreads)
    SpreadColumnsKernel(ColumnTiling tiling, float share, const float* __restrict__ gradient,
                        float* __restrict__ dx) {
  const ColumnShare part = ShareOf(tiling);
  if (part.pack >= tiling.packs) return;
  const int64_t column = part.pack * kPack;
  Pack<kPack> pack =
      LoadPack<kPack>(gradient + static_cast<int64_t>(blockIdx.y) * tiling.cols + column);
  for (int lane = 0; lane < kPack; ++lane) pack.lane[lane] *= share;
  for (int64_t row = part.first; row < part.end; row += part.step) {
    StorePack(pack, dx + row * tiling.cols + column);
  }
}

// A pool's rows as chunks of `positions` rows of a matrix; calls launch(tiling, first row) for
// some of them at a time.
template <typename LaunchRows>
cudaError_t ForEachPooledRows(int64_t rows, int64_t positions, int64_t channels, int pack,
                              LaunchRows launch) {
  constexpr int64_t kMostRows = 1024;  // whose blocks fill a large GPU
  for (int64_t first = 0; first < rows; first += kMostRows) {
    const int64_t count = rows - first < kMostRows ? rows - first : kMostRows;
    ColumnTiling tiling = MakeColumnTiling(positions, channels, pack, kRowsAtOnce, 1);
    tiling.rows = count * positions;
    tiling.rows_per_chunk = positions;
    const cudaError_t error = launch(tiling, first);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

constexpr int kCopiedAtOnce = kRowsAtOnce / 2;

template <int kPack>
__global__ void __launch_bounds__(kThreads)
    CopyColumnsKernel(ColumnTiling tiling, const float* __restrict__ from, int64_t from_columns,
                      float* __restrict__ to, int64_t to_columns) {
  const ColumnShare share = ShareOf(tiling);
  if (share.pack >= tiling.packs) return;
  const int64_t column = share.pack * kPack;
  for (int64_t row = share.first; row < share.end;
       row += static_cast<int64_t>(kCopiedAtOnce) * share.step) {
    Pack<kPack> packs[kCopiedAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kCopiedAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at < share.end) packs[k] = LoadPack<kPack>(from + at * from_columns + column);
    }
#pragma unroll
    for (int k = 0; k < kCopiedAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at < share.end) StorePack(packs[k], to + at * to_columns + column);
    }
  }
}

}  // namespace

cudaError_t LaunchBiasActivation(cudaStream_t stream, int64_t rows, int64_t cols, const float* bias,
                                 std::optional<ActivationKind> activation, float* y) {
  if (bias == nullptr) {
    return activation ? LaunchActivate(stream, *activation, rows * cols, y, y) : cudaSuccess;
  }
  if (rows == 0 || cols == 0) return cudaSuccess;
  if (!activation) {
    return LaunchMapColumns(stream, rows, cols, BiasOperation<Identity>{bias}, y, y, y);
  }
  switch (*activation) {
    case ActivationKind::kRelu:
      return LaunchMapColumns(stream, rows, cols,
                              BiasOperation<Activation<ActivationKind::kRelu>>{bias}, y, y, y);
    case ActivationKind::kTanh:
      return LaunchMapColumns(stream, rows, cols,
                              BiasOperation<Activation<ActivationKind::kTanh>>{bias}, y, y, y);
    case ActivationKind::kSigmoid:
      return LaunchMapColumns(stream, rows, cols,
                              BiasOperation<Activation<ActivationKind::kSigmoid>>{bias}, y, y, y);
  }
  return cudaErrorInvalidValue;
}

cudaError_t LaunchCopyColumns(cudaStream_t stream, int64_t rows, int64_t columns, const float* from,
                              int64_t from_columns, float* to, int64_t to_columns) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  if (columns == from_columns && columns == to_columns) {
    return LaunchCopy(stream, rows * columns, from, to);
  }
  constexpr int64_t kMostChunks = 65535;  // of a grid's y
  const bool aligned = IsAligned(from, sizeof(Pack<4>)) && IsAligned(to, sizeof(Pack<4>)) &&
                       from_columns % 4 == 0 && to_columns % 4 == 0;
  const int pack = ColumnPack(columns, aligned);
  const ColumnTiling tiling = MakeColumnTiling(rows, columns, pack, kCopiedAtOnce, kMostChunks);
  return pack == 4 ? Launch(CopyColumnsKernel<4>, tiling.blocks(), stream, tiling, from,
                            from_columns, to, to_columns)
                   : Launch(CopyColumnsKernel<1>, tiling.blocks(), stream, tiling, from,
                            from_columns, to, to_columns);
}

int64_t ColumnSumsScratch(int64_t rows, int64_t cols) {
  return ReduceColumnsScratch<SumOperation::Partial>(rows, cols);
}

cudaError_t LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t cols, const float* x,
                             float* scratch, float* sums) {
  if (cols == 0) return cudaSuccess;
  if (rows == 0) return LaunchFill(stream, 0.0f, cols, sums);
  return LaunchReduceColumns(stream, rows, cols, IsAligned(x, 16), SumOperation{x}, scratch,
                             SumSink{sums});
}

cudaError_t LaunchGlobalAveragePool(cudaStream_t stream, int64_t rows, int64_t positions,
                                    int64_t channels, const float* x, float* y) {
  if (rows == 0 || positions == 0 || channels == 0) return cudaSuccess;
  const int pack = ColumnPack(channels, IsAligned(x, 16));
  return ForEachPooledRows(
      rows, positions, channels, pack, [&](const ColumnTiling& tiling, int64_t first) {
        const SumOperation sum = {x + first * positions * channels};
        const AverageSink sink = {y, first, positions, channels};
        return pack == 4 ? Launch(ReduceColumnsKernel<4, SumOperation, AverageSink>,
                                  tiling.blocks(), stream, tiling, sum, sink)
                         : Launch(ReduceColumnsKernel<1, SumOperation, AverageSink>,
                                  tiling.blocks(), stream, tiling, sum, sink);
      });
}

cudaError_t LaunchGlobalAveragePoolBackward(cudaStream_t stream, int64_t rows, int64_t positions,
                                            int64_t channels, const float* dy, float* dx) {
  if (rows == 0 || positions == 0 || channels == 0) return cudaSuccess;
  const float share = 1.0f / static_cast<float>(positions);
  const int pack = ColumnPack(channels, IsAligned(dy, 16) && IsAligned(dx, 16));
  return ForEachPooledRows(rows, positions, channels, pack,
                           [&](const ColumnTiling& tiling, int64_t first) {
                             const float* const gradient = dy + first * channels;
                             float* const to = dx + first * positions * channels;
                             return pack == 4 ? Launch(SpreadColumnsKernel<4>, tiling.blocks(),
                                                       stream, tiling, share, gradient, to)
                                              : Launch(SpreadColumnsKernel<1>, tiling.blocks(),
                                                       stream, tiling, share, gradient, to);
                           });
}

}  // namespace keelson::cuda
