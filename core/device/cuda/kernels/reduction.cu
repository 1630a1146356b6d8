#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/host_device.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson::cuda {
namespace {

constexpr int64_t kMostSums = 512;         // partial sums of an array
constexpr int64_t kPacksPerThread = 4;     // that are read before the first is used
constexpr int64_t kArraysPerLaunch = 128;  // as a kernel's parameters hold them

// Blocks for an array of n elements, each of which leaves one partial sum.
int64_t SumsOf(int64_t n) {
  constexpr int64_t kPerBlock = kThreads * kPacksPerThread * 4;
  const int64_t blocks = (n + kPerBlock - 1) / kPerBlock;
  if (blocks < 1) return 1;
  return blocks < kMostSums ? blocks : kMostSums;
}

struct Itself {
  __device__ double operator()(float x) const { return x; }
};

struct Square {
  __device__ double operator()(float x) const { return static_cast<double>(x) * x; }
};

// This thread's part of the sum of f(x[i]).
template <typename Function>
__device__ double ThreadSum(Function f, int64_t n, const float* x) {
  const int64_t count = ThreadCount();
  const bool aligned = reinterpret_cast<uintptr_t>(x) % sizeof(Pack<4>) == 0;
  const int64_t packs = aligned ? n / 4 : 0;
  double sum = 0.0;
  for (int64_t i = ThreadIndex(); i < packs; i += kPacksPerThread * count) {
    Pack<4> read[kPacksPerThread] = {};
#pragma unroll
    for (int k = 0; k < kPacksPerThread; ++k) {
      if (i + k * count < packs) read[k] = LoadPack<4>(x + 4 * (i + k * count));
    }
#pragma unroll
    for (int k = 0; k < kPacksPerThread; ++k) {
      sum += (f(read[k].lane[0]) + f(read[k].lane[1])) + (f(read[k].lane[2]) + f(read[k].lane[3]));
    }
  }
  for (int64_t i = 4 * packs + ThreadIndex(); i < n; i += count) sum += f(x[i]);
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    PartialSumsKernel(int64_t n, const float* x, double* sums) {
  __shared__ double shared[kWarps];
  const double sum = BlockReduce(ThreadSum(Itself(), n, x), shared, Plus());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Sums an array in one block.
__global__ void __launch_bounds__(kThreads) SumKernel(int64_t n, const float* x, float* sum) {
  __shared__ double shared[kWarps];
  const double total = BlockReduce(ThreadSum(Itself(), n, x), shared, Plus());
  if (threadIdx.x == 0) *sum = static_cast<float>(total);
}

// The sum of n partial sums, for every thread of the block.
__device__ double BlockSumOf(int64_t n, const double* sums) {
  __shared__ double shared[kWarps];
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += sums[i];
  return BlockReduce(sum, shared, Plus());
}

__global__ void __launch_bounds__(kThreads)
    FinishSumKernel(int64_t n, const double* sums, float* sum) {
  const double total = BlockSumOf(n, sums);
  if (threadIdx.x == 0) *sum = static_cast<float>(total);
}

struct ArrayList {
  FloatArray arrays[kArraysPerLaunch];
  int count;
};

__global__ void __launch_bounds__(kThreads) SquaresKernel(const ArrayList list, double* sums) {
  __shared__ double shared[kWarps];
  double sum = 0.0;
  for (int i = 0; i < list.count; ++i) {
    sum += ThreadSum(Square(), list.arrays[i].size, list.arrays[i].data);
  }
  sum = BlockReduce(sum, shared, Plus());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    ClipScaleKernel(float max_norm, int64_t n, const double* sums, float* scale) {
  const double norm = sqrt(BlockSumOf(n, sums));
  if (threadIdx.x != 0) return;
  const bool clips = norm > static_cast<double>(max_norm) && norm <= 1.7976931348623157e308;
  *scale = clips ? static_cast<float>(static_cast<double>(max_norm) / norm) : 1.0f;
}

__global__ void __launch_bounds__(kThreads) ClipKernel(const ArrayList list, const float* scale) {
  const float factor = *scale;
  if (factor == 1.0f) return;
  for (int i = 0; i < list.count; ++i) {
    float* const x = list.arrays[i].data;
    const int64_t n = list.arrays[i].size;
    const bool aligned = reinterpret_cast<uintptr_t>(x) % sizeof(Pack<4>) == 0;
    const int64_t packs = aligned ? n / 4 : 0;
#pragma unroll 4
    for (int64_t k = ThreadIndex(); k < packs; k += ThreadCount()) {
      Pack<4> pack = LoadPack<4>(x + 4 * k);
      for (int lane = 0; lane < 4; ++lane) pack.lane[lane] *= factor;
      StorePack(pack, x + 4 * k);
    }
    for (int64_t k = 4 * packs + ThreadIndex(); k < n; k += ThreadCount()) x[k] *= factor;
  }
}

ArrayList ListOf(const FloatArray* arrays, int64_t first, int64_t num_arrays) {
  ArrayList list = {};
  for (int64_t i = first; i < num_arrays && list.count < kArraysPerLaunch; ++i) {
    list.arrays[list.count++] = arrays[i];
  }
  return list;
}

int64_t Elements(const ArrayList& list) {
  int64_t elements = 0;
  for (int i = 0; i < list.count; ++i) elements += list.arrays[i].size;
  return elements;
}

}  // namespace

int64_t SumScratch(int64_t n) { return 2 * SumsOf(n); }

cudaError_t LaunchSum(cudaStream_t stream, int64_t n, const float* x, float* scratch, float* sum) {
  auto* const sums = reinterpret_cast<double*>(scratch);
  const int64_t blocks = SumsOf(n);
  if (blocks == 1) return Launch(SumKernel, dim3(1), stream, n, x, sum);
  const cudaError_t error =
      Launch(PartialSumsKernel, dim3(static_cast<unsigned>(blocks)), stream, n, x, sums);
  if (error != cudaSuccess) return error;
  return Launch(FinishSumKernel, dim3(1), stream, blocks, sums, sum);
}

int64_t ClipScratch(int64_t num_arrays) {
  const int64_t launches = (num_arrays + kArraysPerLaunch - 1) / kArraysPerLaunch;
  return 2 * (launches * kMostSums + 1);
}

cudaError_t LaunchClipByGlobalNorm(cudaStream_t stream, float max_norm, const FloatArray* arrays,
                                   int64_t num_arrays, float* scratch) {
  if (num_arrays == 0) return cudaSuccess;
  auto* const sums = reinterpret_cast<double*>(scratch) + 1;
  int64_t num_sums = 0;
  for (int64_t first = 0; first < num_arrays; first += kArraysPerLaunch) {
    const ArrayList list = ListOf(arrays, first, num_arrays);
    const int64_t blocks = SumsOf(Elements(list));
    const cudaError_t error =
        Launch(SquaresKernel, dim3(static_cast<unsigned>(blocks)), stream, list, sums + num_sums);
    if (error != cudaSuccess) return error;
    num_sums += blocks;
  }
  const cudaError_t error =
      Launch(ClipScaleKernel, dim3(1), stream, max_norm, num_sums, sums, scratch);
  if (error != cudaSuccess) return error;
  for (int64_t first = 0; first < num_arrays; first += kArraysPerLaunch) {
    const ArrayList list = ListOf(arrays, first, num_arrays);
    const cudaError_t clipped =
        Launch(ClipKernel, BlocksFor((Elements(list) + 3) / 4 + 1), stream, list, scratch);
    if (clipped != cudaSuccess) return clipped;
  }
  return cudaSuccess;
}

}  // namespace keelson::cuda
