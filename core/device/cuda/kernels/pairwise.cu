// Inner products of the pairs of a row's vectors, and their gradient.
#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/host_device.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"

namespace keelson::cuda {
namespace {

// Where the pairs of vector i stand in their row of y.
struct PairOrder {
  int64_t vectors;
  int64_t pairs;
  bool diagonal;

  // The first j of a pair (i, j).
  __device__ int64_t FirstOf(int64_t i) const { return diagonal ? i : i + 1; }
  // Pair (i, j), i <= j, is at BaseOf(i) + j.
  __device__ int64_t BaseOf(int64_t i) const {
    return i * vectors - i * (i + 1) / 2 - (diagonal ? 0 : i + 1);
  }
};

PairOrder OrderOf(const PairGeometry& geometry) {
  return {geometry.vectors, geometry.pairs(), geometry.diagonal};
}

// sum += a . b
template <int kPack>
__device__ void AddProducts(const Pack<kPack>& a, const Pack<kPack>& b, float* sum) {
#pragma unroll
  for (int lane = 0; lane < kPack; ++lane) *sum += a.lane[lane] * b.lane[lane];
}

// A warp for each vector i of a row. 2^group_bits of its threads, at most kWarp, compute the
// product with one other vector, and the warp's groups those with several. A thread keeps its first
// pack of vector i, the only one of short vectors.
template <int kPack>
__global__ void __launch_bounds__(kThreads)
    PairwiseDotsKernel(PairOrder order, int64_t rows, int64_t dim, int group_bits,
                       const float* __restrict__ x, float* __restrict__ y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int group = 1 << group_bits, groups = kWarp >> group_bits;
  const int member = lane % group, of_warp = lane / group;
  const int64_t begin = static_cast<int64_t>(member) * kPack;
  const int64_t units = rows * order.vectors;
  for (int64_t unit = ThreadIndex() / kWarp; unit < units; unit += ThreadCount() / kWarp) {
    const int64_t row = unit / order.vectors, i = unit % order.vectors;
    const float* const vectors = x + row * order.vectors * dim;
    float* const products = y + row * order.pairs + order.BaseOf(i);
    Pack<kPack> own = {};
    if (begin < dim) own = LoadPack<kPack>(vectors + i * dim + begin);
    // The groups go on together: all of a warp's threads take part in its reductions.
    for (int64_t first = order.FirstOf(i); first < order.vectors; first += groups) {
      const int64_t j = first + of_warp;
      float sum = 0.0f;
      if (j < order.vectors && begin < dim) {
        AddProducts(own, LoadPack<kPack>(vectors + j * dim + begin), &sum);
        for (int64_t k = begin + group * kPack; k < dim; k += group * kPack) {
          AddProducts(LoadPack<kPack>(vectors + i * dim + k),
                      LoadPack<kPack>(vectors + j * dim + k), &sum);
        }
      }
      for (int offset = group / 2; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(kWholeWarp, sum, offset);
      }
      if (member == 0 && j < order.vectors) products[j] = sum;
    }
  }
}

// 2^group_bits threads side by side for each vector i of a row; each has some packs of its
// elements.
template <int kPack>
__global__ void __launch_bounds__(kThreads)
    PairwiseDotsBackwardKernel(PairOrder order, int64_t rows, int64_t dim, int group_bits,
                               const float* __restrict__ x, const float* __restrict__ dy,
                               float* __restrict__ dx) {
  const int64_t member = static_cast<int64_t>(threadIdx.x) % (1 << group_bits);
  const int64_t units = rows * order.vectors;
  for (int64_t unit = ThreadIndex() >> group_bits; unit < units;
       unit += ThreadCount() >> group_bits) {
    const int64_t row = unit / order.vectors, i = unit % order.vectors;
    const float* const vectors = x + row * order.vectors * dim;
    const float* const gradients = dy + row * order.pairs;
    for (int64_t k = member * kPack; k < dim; k += static_cast<int64_t>(kPack) << group_bits) {
      Pack<kPack> sum = {};
#pragma unroll 4
      for (int64_t j = 0; j < order.vectors; ++j) {
        float gradient = 0.0f;
        if (j != i) {
          gradient = gradients[i < j ? order.BaseOf(i) + j : order.BaseOf(j) + i];
        } else if (order.diagonal) {
          gradient = 2.0f * gradients[order.BaseOf(i) + i];
        } else {
          continue;
        }
        const Pack<kPack> other = LoadPack<kPack>(vectors + j * dim + k);
#pragma unroll
        for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] += gradient * other.lane[lane];
      }
      StorePack(sum, dx + unit * dim + k);
    }
  }
}

// The least b with 2^b >= n, at most `most`.
int BitsFor(int64_t n, int most) {
  int bits = 0;
  while (bits < most && (int64_t{1} << bits) < n) ++bits;
  return bits;
}

}  // namespace

cudaError_t LaunchPairwiseDots(cudaStream_t stream, const PairGeometry& geometry, const float* x,
                               float* y) {
  constexpr int kMostBits = 5;  // a warp
  const int64_t units = geometry.rows * geometry.vectors;
  if (units == 0 || geometry.pairs() == 0) return cudaSuccess;
  const int bits = BitsFor((geometry.dim + 3) / 4, kMostBits);
  const bool packed = geometry.dim % 4 == 0 && IsAligned(x, sizeof(Pack<4>));
  return packed ? Launch(PairwiseDotsKernel<4>, BlocksFor(units, kWarps), stream, OrderOf(geometry),
                         geometry.rows, geometry.dim, bits, x, y)
                : Launch(PairwiseDotsKernel<1>, BlocksFor(units, kWarps), stream, OrderOf(geometry),
                         geometry.rows, geometry.dim, bits, x, y);
}

cudaError_t LaunchPairwiseDotsBackward(cudaStream_t stream, const PairGeometry& geometry,
                                       const float* x, const float* dy, float* dx) {
  constexpr int kMostBits = 8;  // kThreads
  const int64_t units = geometry.rows * geometry.vectors;
  if (units == 0 || geometry.dim == 0) return cudaSuccess;
  const bool packed =
      geometry.dim % 4 == 0 && IsAligned(x, sizeof(Pack<4>)) && IsAligned(dx, sizeof(Pack<4>));
  const int bits = BitsFor(packed ? geometry.dim / 4 : geometry.dim, kMostBits);
  const unsigned blocks = BlocksFor(units, kThreads >> bits);
  return packed ? Launch(PairwiseDotsBackwardKernel<4>, blocks, stream, OrderOf(geometry),
                         geometry.rows, geometry.dim, bits, x, dy, dx)
                : Launch(PairwiseDotsBackwardKernel<1>, blocks, stream, OrderOf(geometry),
                         geometry.rows, geometry.dim, bits, x, dy, dx);
}

}  // namespace keelson::cuda
