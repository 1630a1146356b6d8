#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/columnwise.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

constexpr int kScaledAtOnce = kRowsAtOnce / 2;
constexpr int64_t kMostScaledChunks = 65535;  // of a grid's y

template <int kPack>
__global__ void __launch_bounds__(kThreads)
    ScaleRowsKernel(ColumnTiling tiling, const float* __restrict__ factors, float* __restrict__ x) {
  const ColumnShare share = ShareOf(tiling);
  if (share.pack >= tiling.packs) return;
  const int64_t column = share.pack * kPack;
  for (int64_t row = share.first; row < share.end;
       row += static_cast<int64_t>(kScaledAtOnce) * share.step) {
    Pack<kPack> packs[kScaledAtOnce] = {};
    float scales[kScaledAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kScaledAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at >= share.end) continue;
      packs[k] = LoadPack<kPack>(x + at * tiling.cols + column);
      scales[k] = factors[at];
    }
#pragma unroll
    for (int k = 0; k < kScaledAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at >= share.end) continue;
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) packs[k].lane[lane] *= scales[k];
      StorePack(packs[k], x + at * tiling.cols + column);
    }
  }
}

// One warp for each row. a may be b.
__global__ void __launch_bounds__(kThreads)
    RowDotsKernel(int64_t rows, int64_t columns, float alpha, const float* a, const float* b,
                  float beta, float* __restrict__ y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = ThreadIndex() / kWarp; row < rows; row += ThreadCount() / kWarp) {
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = lane; i < columns; i += kWarp) {
      sum += a[row * columns + i] * b[row * columns + i];
    }
    sum = alpha * WarpReduce(sum, Plus());
    if (lane == 0) y[row] = beta == 0.0f ? sum : sum + beta * y[row];
  }
}

template <int kPack>
__global__ void __launch_bounds__(kThreads)
    AddScaledRowsKernel(ColumnTiling tiling, float alpha, const float* __restrict__ factors,
                        const float* __restrict__ x, float beta, float* __restrict__ y) {
  const ColumnShare share = ShareOf(tiling);
  if (share.pack >= tiling.packs) return;
  const int64_t column = share.pack * kPack;
  for (int64_t row = share.first; row < share.end; row += share.step) {
    const int64_t at = row * tiling.cols + column;
    const float factor = alpha * factors[row];
    Pack<kPack> sum = LoadPack<kPack>(x + at), kept = {};
    if (beta != 0.0f) kept = LoadPack<kPack>(y + at);
#pragma unroll
    for (int lane = 0; lane < kPack; ++lane) {
      sum.lane[lane] = factor * sum.lane[lane];
      if (beta != 0.0f) sum.lane[lane] += beta * kept.lane[lane];
    }
    StorePack(sum, y + at);
  }
}

struct AddScaledConstant {
  static constexpr int kOperands = 1;
  struct Constants {
    float summand;
  };
  float alpha;
  const float* v;

  __device__ Constants Load(int64_t column) const { return {alpha * v[column]}; }
  __device__ float operator()(Constants constants, float x, float) const {
    return x + constants.summand;
  }
};

}  // namespace

cudaError_t LaunchScaleRows(cudaStream_t stream, int64_t rows, int64_t columns,
                            const float* factors, float* x) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const int pack = ColumnPack(columns, IsAligned(x, sizeof(Pack<4>)));
  const ColumnTiling tiling =
      MakeColumnTiling(rows, columns, pack, kScaledAtOnce, kMostScaledChunks);
  return pack == 4 ? Launch(ScaleRowsKernel<4>, tiling.blocks(), stream, tiling, factors, x)
                   : Launch(ScaleRowsKernel<1>, tiling.blocks(), stream, tiling, factors, x);
}

cudaError_t LaunchAddRowVector(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                               const float* v, float* x) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  return LaunchMapColumns(stream, rows, columns, AddScaledConstant{alpha, v}, x, x, x);
}

cudaError_t LaunchRowDots(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                          const float* a, const float* b, float beta, float* y) {
  if (rows == 0) return cudaSuccess;
  return Launch(RowDotsKernel, BlocksFor(rows, kWarps), stream, rows, columns, alpha, a, b, beta,
                y);
}

cudaError_t LaunchAddScaledRows(cudaStream_t stream, int64_t rows, int64_t columns, float alpha,
                                const float* factors, const float* x, float beta, float* y) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const int pack =
      ColumnPack(columns, IsAligned(x, sizeof(Pack<4>)) && IsAligned(y, sizeof(Pack<4>)));
  const ColumnTiling tiling =
      MakeColumnTiling(rows, columns, pack, kScaledAtOnce, kMostScaledChunks);
  return pack == 4 ? Launch(AddScaledRowsKernel<4>, tiling.blocks(), stream, tiling, alpha, factors,
                            x, beta, y)
                   : Launch(AddScaledRowsKernel<1>, tiling.blocks(), stream, tiling, alpha, factors,
                            x, beta, y);
}

}  // namespace keelson::cuda
