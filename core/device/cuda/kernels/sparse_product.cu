#include "core/device/cuda/kernels/host_device.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"

namespace keelson::cuda {
namespace {

// Entries whose rows of x a thread reads before it adds the first of them.
constexpr int kEntriesAtOnce = 8;

// The sum of coefficient * x[column] over entries [begin, end), in their order; x points at the
// pack of columns.
template <int kPack>
__device__ Pack<kPack> SumOfEntries(const SparseArrays& a, int64_t begin, int64_t end,
                                    int64_t width, const float* x) {
  Pack<kPack> sum = {};
  for (int64_t i = begin; i < end; i += kEntriesAtOnce) {
    Pack<kPack> values[kEntriesAtOnce] = {};
    float coefficients[kEntriesAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kEntriesAtOnce; ++k) {
      if (i + k >= end) continue;
      values[k] = LoadPack<kPack>(x + a.columns[i + k] * width);
      coefficients[k] = a.coefficients[i + k];
    }
#pragma unroll
    for (int k = 0; k < kEntriesAtOnce; ++k) {
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        sum.lane[lane] += coefficients[k] * values[k].lane[lane];
      }
    }
  }
  return sum;
}

// 2^group_bits threads side by side for each stored row; each has some packs of its columns.
template <int kPack>
__global__ void __launch_bounds__(kThreads)
    MultiplySparseKernel(SparseArrays a, int group_bits, int64_t width, const float* __restrict__ x,
                         float beta, float* __restrict__ y) {
  const int group = 1 << group_bits;
  const int64_t first = static_cast<int64_t>(threadIdx.x) % group * kPack;
  const int64_t stored = *a.stored;
  for (int64_t k = ThreadIndex() >> group_bits; k < stored; k += ThreadCount() >> group_bits) {
    const int64_t begin = a.offsets[k], end = a.offsets[k + 1], row = a.rows[k];
    for (int64_t column = first; column < width; column += static_cast<int64_t>(group) * kPack) {
      float* const to = y + row * width + column;
      Pack<kPack> sum = SumOfEntries<kPack>(a, begin, end, width, x + column);
      if (beta != 0) {
        const Pack<kPack> old = LoadPack<kPack>(to);
#pragma unroll
        for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] += beta * old.lane[lane];
      }
      StorePack(sum, to);
    }
  }
}

}  // namespace

cudaError_t LaunchMultiplySparse(cudaStream_t stream, const SparseArrays& a, int64_t width,
                                 const float* x, float beta, float* y) {
  if (a.capacity == 0 || width == 0) return cudaSuccess;
  const bool packed =
      width % 4 == 0 && IsAligned(x, sizeof(Pack<4>)) && IsAligned(y, sizeof(Pack<4>));
  const int64_t packs = packed ? width / 4 : width;
  int group_bits = 0;
  while ((1 << group_bits) < packs && (1 << group_bits) < kThreads) ++group_bits;
  const unsigned blocks = BlocksFor(a.capacity, kThreads >> group_bits);
  return packed ? Launch(MultiplySparseKernel<4>, blocks, stream, a, group_bits, width, x, beta, y)
                : Launch(MultiplySparseKernel<1>, blocks, stream, a, group_bits, width, x, beta, y);
}

}  // namespace keelson::cuda
