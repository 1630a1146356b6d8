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

}  // namespace keelson::cuda
