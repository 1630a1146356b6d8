// Kernels over the columns of matrices [rows, cols]; for .cu files. A thread keeps its columns, so
// that its loop needs no divisions, and processes some of their rows.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_COLUMNWISE_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_COLUMNWISE_H_

#include <cstdint>

#include "core/device/cuda/kernels/host_device.h"
#include "core/device/cuda/kernels/launch.h"

namespace keelson::cuda {

// How thread blocks share a matrix: block (x, y) has the packs of columns [x * width, (x + 1) *
// width) in the rows of chunk y. Its threads stand `width` side by side, kThreads / width deep.
struct ColumnTiling {
  int64_t rows;
  int64_t cols;
  int64_t packs;  // columns in packs of 1 or 4
  int64_t rows_per_chunk;
  int width;

  int64_t chunks() const { return (rows + rows_per_chunk - 1) / rows_per_chunk; }
  dim3 blocks() const {
    return dim3(static_cast<unsigned>((packs + width - 1) / width),
                static_cast<unsigned>(chunks()));
  }
};

// Chunks of at least `rows_per_thread` rows for each thread, and at most `most_chunks`. rows and
// cols > 0.
inline ColumnTiling MakeColumnTiling(int64_t rows, int64_t cols, int pack, int64_t rows_per_thread,
                                     int64_t most_chunks) {
  constexpr int64_t kWarp = 32, kMostBlocks = 4096;
  const int64_t packs = cols / pack, across = (packs + kWarp - 1) / kWarp;
  const int64_t width = (packs + across - 1) / across;
  const int64_t least_rows = kThreads / width * rows_per_thread;
  int64_t chunks = (rows + least_rows - 1) / least_rows;
  const int64_t worth = kMostBlocks / across > 1 ? kMostBlocks / across : 1;
  if (chunks > worth) chunks = worth;
  if (chunks > most_chunks) chunks = most_chunks;
  return {rows, cols, packs, (rows + chunks - 1) / chunks, static_cast<int>(width)};
}

// Columns in a pack.
inline int ColumnPack(int64_t cols, bool aligned) { return aligned && cols % 4 == 0 ? 4 : 1; }

// A thread's part: rows first, first + step, ... below `end`; none where `pack` is not below packs.
struct ColumnShare {
  int64_t pack;
  int64_t first;
  int64_t end;
  int step;
  int depth;  // of the thread in its block
};

__device__ inline ColumnShare ShareOf(const ColumnTiling& tiling) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % tiling.width, depth = thread / tiling.width;
  const int step = kThreads / tiling.width;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * tiling.rows_per_chunk;
  const int64_t end = begin + tiling.rows_per_chunk;
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * tiling.width + lane;
  const bool idle = depth >= step;
  return {idle ? tiling.packs : pack, begin + depth, end < tiling.rows ? end : tiling.rows, step,
          depth};
}

// Reduces the rows of each column to a Partial:
//   Operation::Partial                    zeros are the result of no rows
//   Operation::Merge(Partial, Partial)
//   operation.Add<kPack>(tiling, column, first, step, end, sums)
// and gives the results of each chunk to sink(chunk, column, partial).
template <int kPack, typename Operation, typename Sink>
__global__ void __launch_bounds__(kThreads)
    ReduceColumnsKernel(ColumnTiling tiling, Operation operation, Sink sink) {
  using Partial = typename Operation::Partial;
  __shared__ Partial shared[kPack][kThreads];
  const ColumnShare share = ShareOf(tiling);
  const int64_t column = share.pack * kPack;
  const int thread = static_cast<int>(threadIdx.x);
  Partial sums[kPack] = {};
  if (share.pack < tiling.packs) {
    operation.template Add<kPack>(tiling, column, share.first, share.step, share.end, sums);
  }
  for (int lane = 0; lane < kPack; ++lane) shared[lane][thread] = sums[lane];
  int half = 1;
  while (half < share.step) half *= 2;
  for (half /= 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.depth < half && share.depth + half < share.step) {
      for (int lane = 0; lane < kPack; ++lane) {
        shared[lane][thread] =
            Operation::Merge(shared[lane][thread], shared[lane][thread + half * tiling.width]);
      }
    }
  }
  // Only its own thread wrote what it reads here.
  if (share.depth == 0 && share.pack < tiling.packs) {
    for (int lane = 0; lane < kPack; ++lane) {
      sink(static_cast<int64_t>(blockIdx.y), column + lane, shared[lane][thread]);
    }
  }
}

// Keeps the partials [chunks, cols].
template <typename Partial>
struct PartialSink {
  Partial* partials;
  int64_t cols;
  __device__ void operator()(int64_t chunk, int64_t column, Partial partial) const {
    partials[chunk * cols + column] = partial;
  }
};

// Reduces the partials [chunks, cols] of an Operation.
template <typename Operation>
struct MergePartials {
  using Partial = typename Operation::Partial;
  const Partial* partials;

  __device__ static Partial Merge(Partial a, Partial b) { return Operation::Merge(a, b); }

  template <int kPack>
  __device__ void Add(const ColumnTiling& tiling, int64_t column, int64_t first, int step,
                      int64_t end, Partial (&sums)[kPack]) const {
    for (int64_t row = first; row < end; row += step) {
      for (int lane = 0; lane < kPack; ++lane) {
        sums[lane] = Merge(sums[lane], partials[row * tiling.cols + column + lane]);
      }
    }
  }
};

// Rows that are read before the first of them is used.
constexpr int kRowsAtOnce = 8;

inline ColumnTiling ReductionTiling(int64_t rows, int64_t cols, int pack) {
  constexpr int64_t kMostChunks = 256;
  return MakeColumnTiling(rows, cols, pack, kRowsAtOnce, kMostChunks);
}

// Room for the partials, whatever the alignment.
template <typename Partial>
int64_t ReduceColumnsScratch(int64_t rows, int64_t cols) {
  if (rows == 0 || cols == 0) return 0;
  const int64_t alone = ReductionTiling(rows, cols, 1).chunks();
  const int64_t packed = ReductionTiling(rows, cols, ColumnPack(cols, true)).chunks();
  const int64_t chunks = alone > packed ? alone : packed;
  return chunks * cols * static_cast<int64_t>(sizeof(Partial) / sizeof(float));
}

// Reduces all rows; sink(0, column, partial). rows and cols > 0. `aligned`: what the operation
// reads is at multiples of 16.
template <typename Operation, typename Sink>
cudaError_t LaunchReduceColumns(cudaStream_t stream, int64_t rows, int64_t cols, bool aligned,
                                const Operation& operation, float* scratch, const Sink& sink) {
  using Partial = typename Operation::Partial;
  const int pack = ColumnPack(cols, aligned);
  const ColumnTiling tiling = ReductionTiling(rows, cols, pack);
  const int64_t chunks = tiling.chunks();
  if (chunks == 1) {
    return pack == 4 ? Launch(ReduceColumnsKernel<4, Operation, Sink>, tiling.blocks(), stream,
                              tiling, operation, sink)
                     : Launch(ReduceColumnsKernel<1, Operation, Sink>, tiling.blocks(), stream,
                              tiling, operation, sink);
  }
  const PartialSink<Partial> keep = {reinterpret_cast<Partial*>(scratch), cols};
  const cudaError_t error = pack == 4
                                ? Launch(ReduceColumnsKernel<4, Operation, PartialSink<Partial>>,
                                         tiling.blocks(), stream, tiling, operation, keep)
                                : Launch(ReduceColumnsKernel<1, Operation, PartialSink<Partial>>,
                                         tiling.blocks(), stream, tiling, operation, keep);
  if (error != cudaSuccess) return error;
  const ColumnTiling merging = MakeColumnTiling(chunks, cols, 1, kRowsAtOnce, 1);
  return Launch(ReduceColumnsKernel<1, MergePartials<Operation>, Sink>, merging.blocks(), stream,
                merging, MergePartials<Operation>{keep.partials}, sink);
}

// y of each element: operation(operation.Load(column), a, b), of which Load is called once for
// each column. kOperands is 1 when b is not used.
template <int kPack, typename Operation>
__global__ void __launch_bounds__(kThreads)
    MapColumnsKernel(ColumnTiling tiling, Operation operation, const float* a, const float* b,
                     float* y) {
  constexpr int kAtOnce = kRowsAtOnce / 2;
  const ColumnShare share = ShareOf(tiling);
  if (share.pack >= tiling.packs) return;
  const int64_t column = share.pack * kPack;
  typename Operation::Constants constants[kPack];
  for (int lane = 0; lane < kPack; ++lane) constants[lane] = operation.Load(column + lane);
  int64_t row = share.first;
  for (; row < share.end; row += static_cast<int64_t>(kAtOnce) * share.step) {
    Pack<kPack> from_a[kAtOnce] = {}, from_b[kAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at >= share.end) continue;
      from_a[k] = LoadPack<kPack>(a + at * tiling.cols + column);
      if (Operation::kOperands > 1) from_b[k] = LoadPack<kPack>(b + at * tiling.cols + column);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t at = row + static_cast<int64_t>(k) * share.step;
      if (at >= share.end) continue;
#pragma unroll
      for (int lane = 0; lane < kPack; ++lane) {
        from_a[k].lane[lane] =
            operation(constants[lane], from_a[k].lane[lane], from_b[k].lane[lane]);
      }
      StorePack(from_a[k], y + at * tiling.cols + column);
    }
  }
}

// y may be a or b. rows and cols > 0.
template <typename Operation>
cudaError_t LaunchMapColumns(cudaStream_t stream, int64_t rows, int64_t cols,
                             const Operation& operation, const float* a, const float* b, float* y) {
  constexpr int64_t kMostChunks = 65535;  // of a grid's y
  const bool aligned = IsAligned(a, 16) && IsAligned(b, 16) && IsAligned(y, 16);
  const int pack = ColumnPack(cols, aligned);
  const ColumnTiling tiling = MakeColumnTiling(rows, cols, pack, kRowsAtOnce / 2, kMostChunks);
  return pack == 4 ? Launch(MapColumnsKernel<4, Operation>, tiling.blocks(), stream, tiling,
                            operation, a, b, y)
                   : Launch(MapColumnsKernel<1, Operation>, tiling.blocks(), stream, tiling,
                            operation, a, b, y);
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_COLUMNWISE_H_
