// The threshold is found by its bits from the top, 11 + 10 + 10 of the magnitude's 31, with a
// histogram of those that begin with the bits found so far. Source: Alabi et al., "Fast k-selection
// algorithms for graphics processing units", JEA 2012.
#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_math.h"
#include "core/device/cuda/kernels/wire_tile.h"

namespace keelson::cuda {
namespace {

struct Level {
  int shift;  // of the bits that are counted
  int bits;
  int first_bin;  // of the level, among those of all levels
};
constexpr Level kLevels[] = {{20, 11, 0}, {10, 10, 1 << 11}, {0, 10, 3 << 10}};
constexpr int kMostBins = 1 << 11;
constexpr int kBinsOfAllLevels = 1 << 12;

// The bits found so far of a block's threshold, and its rank from 1, in descending order, among the
// magnitudes that begin with them. When all bits are found the rank is the number of magnitudes
// equal to the threshold that are kept.
struct Threshold {
  uint32_t prefix;
  uint32_t rank;
};

// Elements before a tile in its block.
struct TileStart {
  uint32_t above;  // the threshold
  uint32_t equal;
};

struct Scratch {
  Threshold* thresholds;  // of each block
  uint32_t* bins;         // [blocks, kBinsOfAllLevels]
  TileStart* starts;      // of each tile
};

int64_t BytesOfBins(const WireTables& tables) {
  return tables.num_blocks * kBinsOfAllLevels * static_cast<int64_t>(sizeof(uint32_t));
}

Scratch ScratchAt(const WireTables& tables, void* memory) {
  auto* const bytes = static_cast<uint8_t*>(memory);
  auto* const starts = reinterpret_cast<TileStart*>(bytes + BytesOfBins(tables));
  return {reinterpret_cast<Threshold*>(starts + tables.num_tiles),
          reinterpret_cast<uint32_t*>(bytes), starts};
}

// Counts those magnitudes of a thread's elements that begin with `prefix`.
template <int kLevel>
__device__ void CountMagnitudes(Pack<4> x, TileShare share, uint32_t prefix, uint32_t* bins) {
  constexpr Level kOf = kLevels[kLevel];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint32_t magnitude = MagnitudeBits(x.lane[k]);
    if (k >= share.count || magnitude >> (kOf.shift + kOf.bits) != prefix) continue;
    atomicAdd(&bins[(magnitude >> kOf.shift) & ((1u << kOf.bits) - 1u)], 1u);
  }
}

// The threshold with the bits of this level; a block's threads call it together. One of them writes
// it.
template <int kLevel>
__device__ void FindBits(const uint32_t* bins, Threshold before, uint32_t (&shared)[kWarps],
                         Threshold* found) {
  constexpr int kBins = 1 << kLevels[kLevel].bits, kPerThread = kBins / kThreads;
  const int first = kBins - 1 - kPerThread * static_cast<int>(threadIdx.x);
  uint32_t counts[kPerThread], sum = 0;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    counts[k] = bins[first - k];
    sum += counts[k];
  }
  uint32_t total;
  uint32_t above = BlockPrefixSum(sum, shared, &total);
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    if (above < before.rank && before.rank <= above + counts[k]) {
      *found = {before.prefix << kLevels[kLevel].bits | static_cast<uint32_t>(first - k),
                before.rank - above};
    }
    above += counts[k];
  }
}

// How many of a thread's elements are above the threshold, in the upper half, and equal to it.
__device__ uint32_t CountSelected(Pack<4> x, TileShare share, uint32_t threshold) {
  uint32_t counts = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint32_t magnitude = MagnitudeBits(x.lane[k]);
    if (k < share.count && magnitude > threshold) counts += 1u << 16;
    if (k < share.count && magnitude == threshold) counts += 1u;
  }
  return counts;
}

__device__ TileStart Advanced(TileStart start, uint32_t counts) {
  return {start.above + (counts >> 16), start.equal + (counts & 0xffffu)};
}

// Sends the selected ones of a thread's elements and leaves 0 in their place. `before`: of the
// elements of the block before them.
__device__ void SendSelected(const WireTile& tile, const WireTopKBlock& block, TileShare share,
                             Threshold threshold, TileStart before, Pack<4> x, float* residual,
                             uint8_t* to) {
  auto* const header = reinterpret_cast<uint32_t*>(to + block.offset);
  uint32_t* const positions = header + 1;
  auto* const elements = reinterpret_cast<float*>(positions + block.count);
  const int64_t first = tile.first_element + share.first;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= share.count) continue;
    const uint32_t magnitude = MagnitudeBits(x.lane[k]);
    const uint32_t ties = before.equal < threshold.rank ? before.equal : threshold.rank;
    const bool above = magnitude > threshold.prefix, equal = magnitude == threshold.prefix;
    if (above || (equal && before.equal < threshold.rank)) {
      const uint32_t at = before.above + ties;
      positions[at] = static_cast<uint32_t>(first + k - block.first_element);
      elements[at] = x.lane[k];
      residual[first + k] = 0.0f;
    }
    before.above += above ? 1u : 0u;
    before.equal += equal ? 1u : 0u;
  }
}

__device__ void WriteCount(const WireTopKBlock& block, uint8_t* to) {
  *reinterpret_cast<uint32_t*>(to + block.offset) = static_cast<uint32_t>(block.count);
}

// Adds a block's share of the histogram to that of all, and clears it.
template <int kLevel>
__device__ void FlushBins(int block, uint32_t* shared, uint32_t* bins) {
  __syncthreads();
  uint32_t* const to =
      bins + static_cast<int64_t>(block) * kBinsOfAllLevels + kLevels[kLevel].first_bin;
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kLevels[kLevel].bits; i += kThreads) {
    if (shared[i] != 0) atomicAdd(&to[i], shared[i]);
    shared[i] = 0;
  }
  __syncthreads();
}

// Each thread block counts the magnitudes of consecutive tiles. At level 0 it adds the gradient to
// the residual on the way.
template <int kLevel>
__global__ void __launch_bounds__(kThreads)
    CountKernel(WireTables tables, int64_t tiles_per_block, const float* gradient,
                const float* gate, Scratch scratch, float* residual) {
  __shared__ uint32_t bins[1 << kLevels[kLevel].bits];
  if (IsClosed(gate)) return;
  const int64_t begin = blockIdx.x * tiles_per_block, end = begin + tiles_per_block;
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kLevels[kLevel].bits; i += kThreads) {
    bins[i] = 0;
  }
  __syncthreads();
  int block = -1;
  for (int64_t i = begin; i < end && i < tables.num_tiles; ++i) {
    const WireTile tile = tables.tiles[i];
    if (block >= 0 && tile.block != block) FlushBins<kLevel>(block, bins, scratch.bins);
    block = tile.block;
    const TileShare share = TileShareOf(tile);
    Pack<4> x;
    if (kLevel == 0) {
      x = LoadWithResidual(gradient, residual, tile, share);
      StoreShare(x, tile, share, residual);
    } else {
      x = LoadShare(residual, tile, share);
    }
    const uint32_t prefix = kLevel == 0 ? 0 : scratch.thresholds[block].prefix;
    CountMagnitudes<kLevel>(x, share, prefix, bins);
  }
  if (block >= 0) FlushBins<kLevel>(block, bins, scratch.bins);
}

// One thread block for each block.
template <int kLevel>
__global__ void __launch_bounds__(kThreads)
    FindBitsKernel(WireTables tables, const float* gate, Scratch scratch) {
  __shared__ uint32_t shared[kWarps];
  if (IsClosed(gate)) return;
  for (int64_t i = blockIdx.x; i < tables.num_blocks; i += gridDim.x) {
    const Threshold before = kLevel == 0
                                 ? Threshold{0, static_cast<uint32_t>(tables.blocks[i].count)}
                                 : scratch.thresholds[i];
    __syncthreads();  // all have read it
    FindBits<kLevel>(scratch.bins + i * kBinsOfAllLevels + kLevels[kLevel].first_bin, before,
                     shared, &scratch.thresholds[i]);
  }
}

// How many elements of each tile are above the threshold, and equal to it.
__global__ void __launch_bounds__(kThreads)
    CountSelectedKernel(WireTables tables, const float* gate, const float* residual,
                        Scratch scratch) {
  __shared__ uint32_t shared[kWarps];
  if (IsClosed(gate)) return;
  for (int64_t i = blockIdx.x; i < tables.num_tiles; i += gridDim.x) {
    const WireTile tile = tables.tiles[i];
    const TileShare share = TileShareOf(tile);
    const uint32_t counts = CountSelected(LoadShare(residual, tile, share), share,
                                          scratch.thresholds[tile.block].prefix);
    const uint32_t sum = BlockReduce(counts, shared, Plus());
    if (threadIdx.x == 0) scratch.starts[i] = {sum >> 16, sum & 0xffffu};
    __syncthreads();  // before `shared` is written again
  }
}

// Computes the tiles' starts from their counts, one thread block for each block.
__global__ void __launch_bounds__(kThreads)
    FindStartsKernel(WireTables tables, const float* gate, Scratch scratch) {
  __shared__ uint32_t of_above[kWarps];
  __shared__ uint32_t of_equal[kWarps];
  if (IsClosed(gate)) return;
  for (int64_t i = blockIdx.x; i < tables.num_blocks; i += gridDim.x) {
    const WireTopKBlock block = tables.blocks[i];
    TileStart before = {0, 0};
    for (int64_t first = 0; first < block.num_tiles; first += kThreads) {
      const int64_t tile = first + threadIdx.x;
      TileStart* const at = scratch.starts + block.first_tile + tile;
      const TileStart counts = tile < block.num_tiles ? *at : TileStart{0, 0};
      uint32_t above, equal;
      const uint32_t above_before = BlockPrefixSum(counts.above, of_above, &above);
      const uint32_t equal_before = BlockPrefixSum(counts.equal, of_equal, &equal);
      if (tile < block.num_tiles) *at = {before.above + above_before, before.equal + equal_before};
      before = {before.above + above, before.equal + equal};
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    SendKernel(WireTables tables, const float* gate, Scratch scratch, float* residual,
               uint8_t* to) {
  __shared__ uint32_t shared[kWarps];
  if (IsClosed(gate)) return;
  for (int64_t i = blockIdx.x; i < tables.num_tiles; i += gridDim.x) {
    const WireTile tile = tables.tiles[i];
    const WireTopKBlock block = tables.blocks[tile.block];
    const Threshold threshold = scratch.thresholds[tile.block];
    const TileShare share = TileShareOf(tile);
    const Pack<4> x = LoadShare(residual, tile, share);
    uint32_t sum;
    const uint32_t before = BlockPrefixSum(CountSelected(x, share, threshold.prefix), shared, &sum);
    SendSelected(tile, block, share, threshold, Advanced(scratch.starts[i], before), x, residual,
                 to);
    if (i == block.first_tile && threadIdx.x == 0) WriteCount(block, to);
    __syncthreads();  // before `shared` is written again
  }
}

// For small blocks: one thread block processes all levels, one after the other.
template <int kLevel>
__device__ void FindBitsAlone(const WireTables& tables, const WireTopKBlock& block,
                              const float* gradient, float* residual, uint32_t* bins,
                              uint32_t (&shared)[kWarps], Threshold* threshold) {
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kLevels[kLevel].bits; i += kThreads) {
    bins[i] = 0;
  }
  __syncthreads();
  const Threshold before = *threshold;
  for (int64_t i = 0; i < block.num_tiles; ++i) {
    const WireTile tile = tables.tiles[block.first_tile + i];
    const TileShare share = TileShareOf(tile);
    Pack<4> x;
    if (kLevel == 0) {
      x = LoadWithResidual(gradient, residual, tile, share);
      StoreShare(x, tile, share, residual);
    } else {
      x = LoadShare(residual, tile, share);
    }
    CountMagnitudes<kLevel>(x, share, before.prefix, bins);
  }
  __syncthreads();
  FindBits<kLevel>(bins, before, shared, threshold);
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    EncodeSmallKernel(WireTables tables, const float* gradient, const float* gate, float* residual,
                      uint8_t* to) {
  __shared__ uint32_t bins[kMostBins];
  __shared__ uint32_t shared[kWarps];
  __shared__ Threshold threshold;
  if (IsClosed(gate)) return;
  const WireTopKBlock block = tables.blocks[blockIdx.x];
  if (threadIdx.x == 0) threshold = {0, static_cast<uint32_t>(block.count)};
  FindBitsAlone<0>(tables, block, gradient, residual, bins, shared, &threshold);
  FindBitsAlone<1>(tables, block, gradient, residual, bins, shared, &threshold);
  FindBitsAlone<2>(tables, block, gradient, residual, bins, shared, &threshold);
  const Threshold found = threshold;
  TileStart start = {0, 0};
  for (int64_t i = 0; i < block.num_tiles; ++i) {
    const WireTile tile = tables.tiles[block.first_tile + i];
    const TileShare share = TileShareOf(tile);
    const Pack<4> x = LoadShare(residual, tile, share);
    uint32_t sum;
    const uint32_t before = BlockPrefixSum(CountSelected(x, share, found.prefix), shared, &sum);
    SendSelected(tile, block, share, found, Advanced(start, before), x, residual, to);
    start = Advanced(start, sum);
    __syncthreads();  // before `shared` is written again
  }
  if (threadIdx.x == 0) WriteCount(block, to);
}

template <int kLevel>
cudaError_t LaunchLevel(cudaStream_t stream, const WireTables& tables, const float* gradient,
                        const float* gate, const Scratch& scratch, float* residual) {
  constexpr int64_t kTilesPerBlock = 8, kMostBlocks = 2048;
  int64_t blocks = (tables.num_tiles + kTilesPerBlock - 1) / kTilesPerBlock;
  if (blocks > kMostBlocks) blocks = kMostBlocks;
  const int64_t tiles_per_block = (tables.num_tiles + blocks - 1) / blocks;
  const cudaError_t error = Launch(CountKernel<kLevel>, dim3(static_cast<unsigned>(blocks)), stream,
                                   tables, tiles_per_block, gradient, gate, scratch, residual);
  if (error != cudaSuccess) return error;
  return Launch(FindBitsKernel<kLevel>, BlocksFor(tables.num_blocks, 1), stream, tables, gate,
                scratch);
}

}  // namespace

int64_t EncodeTopKScratch(const WireTables& tables) {
  return BytesOfBins(tables) + tables.num_tiles * static_cast<int64_t>(sizeof(TileStart)) +
         tables.num_blocks * static_cast<int64_t>(sizeof(Threshold));
}

cudaError_t LaunchEncodeTopK(cudaStream_t stream, const WireTables& tables, const float* gradient,
                             const float* gate, void* scratch, float* residual, uint8_t* to) {
  constexpr int64_t kFewTiles = 4;  // which cost less one after the other than many launches
  if (tables.num_tiles == 0) return cudaSuccess;
  if (tables.num_tiles <= kFewTiles) {
    return Launch(EncodeSmallKernel, dim3(static_cast<unsigned>(tables.num_blocks)), stream, tables,
                  gradient, gate, residual, to);
  }
  const Scratch at = ScratchAt(tables, scratch);
  cudaError_t error = cudaMemsetAsync(at.bins, 0, BytesOfBins(tables), stream);
  if (error != cudaSuccess) return error;
  error = LaunchLevel<0>(stream, tables, gradient, gate, at, residual);
  if (error != cudaSuccess) return error;
  error = LaunchLevel<1>(stream, tables, gradient, gate, at, residual);
  if (error != cudaSuccess) return error;
  error = LaunchLevel<2>(stream, tables, gradient, gate, at, residual);
  if (error != cudaSuccess) return error;
  error = Launch(CountSelectedKernel, BlocksFor(tables.num_tiles, 1), stream, tables, gate,
                 residual, at);
  if (error != cudaSuccess) return error;
  error = Launch(FindStartsKernel, BlocksFor(tables.num_blocks, 1), stream, tables, gate, at);
  if (error != cudaSuccess) return error;
  return Launch(SendKernel, BlocksFor(tables.num_tiles, 1), stream, tables, gate, at, residual, to);
}

}  // namespace keelson::cuda
