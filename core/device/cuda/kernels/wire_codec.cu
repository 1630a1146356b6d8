#include "core/device/cuda/kernels/block_reduce.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_math.h"
#include "core/device/cuda/kernels/wire_tile.h"

namespace keelson::cuda {
namespace {

constexpr int kTilesAtOnce = 4;
constexpr int kPacksAtOnce = 4;

struct Float16 {
  __device__ static uint16_t Encode(float x) { return ToFloat16(x); }
  __device__ static float Decode(uint16_t code) { return FromFloat16(code); }
};

struct Bfloat16 {
  __device__ static uint16_t Encode(float x) { return ToBfloat16(x); }
  __device__ static float Decode(uint16_t code) { return FromBfloat16(code); }
};

template <typename Format>
__device__ uint32_t EncodeTwo(float low, float high) {
  return Format::Encode(low) | static_cast<uint32_t>(Format::Encode(high)) << 16;
}

template <typename Format>
__device__ Pack<4> DecodeFour(uint2 codes) {
  return {{Format::Decode(static_cast<uint16_t>(codes.x)),
           Format::Decode(static_cast<uint16_t>(codes.x >> 16)),
           Format::Decode(static_cast<uint16_t>(codes.y)),
           Format::Decode(static_cast<uint16_t>(codes.y >> 16))}};
}

// `codes` are at a multiple of 4, as the offsets of blocks are.
template <typename Format>
__device__ void StoreShorts(Pack<4> x, TileShare share, uint8_t* codes) {
  if (share.whole) {
    const uint2 words = {EncodeTwo<Format>(x.lane[0], x.lane[1]),
                         EncodeTwo<Format>(x.lane[2], x.lane[3])};
    if (reinterpret_cast<uintptr_t>(codes) % sizeof(uint2) == 0) {
      *reinterpret_cast<uint2*>(codes) = words;
    } else {
      reinterpret_cast<uint32_t*>(codes)[0] = words.x;
      reinterpret_cast<uint32_t*>(codes)[1] = words.y;
    }
    return;
  }
  auto* const shorts = reinterpret_cast<uint16_t*>(codes);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < share.count) shorts[k] = Format::Encode(x.lane[k]);
  }
}

// One block for each tile. A thread reads of several tiles before it writes, so that more bytes are
// on their way from memory.
template <typename Format>
__global__ void __launch_bounds__(kThreads)
    EncodeShortsKernel(const WireTile* __restrict__ tiles, int64_t num_tiles,
                       const float* __restrict__ gradient, uint8_t* __restrict__ to) {
  for (int64_t first = blockIdx.x; first < num_tiles; first += int64_t{kTilesAtOnce} * gridDim.x) {
    TileShare shares[kTilesAtOnce] = {};
    Pack<4> packs[kTilesAtOnce];
    uint8_t* codes[kTilesAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kTilesAtOnce; ++k) {
      const int64_t i = first + int64_t{k} * gridDim.x;
      if (i >= num_tiles) continue;
      const WireTile tile = tiles[i];
      shares[k] = TileShareOf(tile);
      packs[k] = LoadShare(gradient, tile, shares[k]);
      codes[k] = to + tile.offset + sizeof(uint16_t) * shares[k].first;
    }
#pragma unroll
    for (int k = 0; k < kTilesAtOnce; ++k) StoreShorts<Format>(packs[k], shares[k], codes[k]);
  }
}

// One block for each tile, which is a group.
__global__ void __launch_bounds__(kThreads)
    EncodeInt8Kernel(const WireTile* __restrict__ tiles, int64_t num_tiles,
                     const float* __restrict__ gradient, const float* __restrict__ gate,
                     float* __restrict__ residual, uint8_t* __restrict__ to) {
  __shared__ uint32_t shared[kWarps];
  if (IsClosed(gate)) return;
  for (int64_t i = blockIdx.x; i < num_tiles; i += gridDim.x) {
    const WireTile tile = tiles[i];
    const TileShare share = TileShareOf(tile);
    Pack<4> x = LoadWithResidual(gradient, residual, tile, share);
    uint32_t largest = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) largest = Maximum()(largest, MagnitudeBits(x.lane[k]));
    const float scale = Int8Scale(BlockReduce(largest, shared, Maximum()));
    uint32_t codes = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Int8Element element = ToInt8(x.lane[k], scale);
      codes |= static_cast<uint32_t>(static_cast<uint8_t>(element.code)) << (8 * k);
      x.lane[k] = element.residual;
    }
    StoreShare(x, tile, share, residual);
    uint8_t* const group = to + tile.offset;
    if (threadIdx.x == 0) *reinterpret_cast<float*>(group) = scale;
    uint8_t* const bytes = group + sizeof(float) + share.first;
    if (share.whole) {
      *reinterpret_cast<uint32_t*>(bytes) = codes;
    } else {
      for (int k = 0; k < share.count; ++k) bytes[k] = static_cast<uint8_t>(codes >> (8 * k));
    }
    __syncthreads();  // before `shared` is written again
  }
}

// Four elements at a time where `from` is at a multiple of 8, and `to` of 16.
template <typename Format>
__global__ void __launch_bounds__(kThreads)
    DecodeShortsKernel(bool aligned, int64_t n, const uint8_t* __restrict__ from,
                       float* __restrict__ to) {
  const int64_t fours = aligned ? n / 4 : 0;
  for (int64_t first = ThreadIndex(); first < fours; first += kPacksAtOnce * ThreadCount()) {
    uint2 codes[kPacksAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kPacksAtOnce; ++k) {
      const int64_t i = first + k * ThreadCount();
      if (i < fours) codes[k] = reinterpret_cast<const uint2*>(from)[i];
    }
#pragma unroll
    for (int k = 0; k < kPacksAtOnce; ++k) {
      const int64_t i = first + k * ThreadCount();
      if (i < fours) StorePack(DecodeFour<Format>(codes[k]), to + 4 * i);
    }
  }
  const auto* const codes = reinterpret_cast<const uint16_t*>(from);
  for (int64_t i = 4 * fours + ThreadIndex(); i < n; i += ThreadCount()) {
    to[i] = Format::Decode(codes[i]);
  }
}

template <typename Format>
cudaError_t LaunchEncodeShorts(cudaStream_t stream, const WireTables& tables, const float* gradient,
                               uint8_t* to) {
  if (tables.num_tiles == 0) return cudaSuccess;
  return Launch(EncodeShortsKernel<Format>, BlocksFor(tables.num_tiles, 1), stream, tables.tiles,
                tables.num_tiles, gradient, to);
}

template <typename Format>
cudaError_t LaunchDecodeShorts(cudaStream_t stream, int64_t n, const uint8_t* from, float* to) {
  if (n == 0) return cudaSuccess;
  const bool aligned = IsAligned(from, sizeof(uint2)) && IsAligned(to, sizeof(Pack<4>));
  return Launch(DecodeShortsKernel<Format>, BlocksFor(aligned ? (n + 3) / 4 : n), stream, aligned,
                n, from, to);
}

}  // namespace

cudaError_t LaunchEncodeFloat16(cudaStream_t stream, const WireTables& tables,
                                const float* gradient, uint8_t* to) {
  return LaunchEncodeShorts<Float16>(stream, tables, gradient, to);
}

cudaError_t LaunchEncodeBfloat16(cudaStream_t stream, const WireTables& tables,
                                 const float* gradient, uint8_t* to) {
  return LaunchEncodeShorts<Bfloat16>(stream, tables, gradient, to);
}

cudaError_t LaunchEncodeInt8(cudaStream_t stream, const WireTables& tables, const float* gradient,
                             const float* gate, float* residual, uint8_t* to) {
  if (tables.num_tiles == 0) return cudaSuccess;
  return Launch(EncodeInt8Kernel, BlocksFor(tables.num_tiles, 1), stream, tables.tiles,
                tables.num_tiles, gradient, gate, residual, to);
}

cudaError_t LaunchDecodeFloat16(cudaStream_t stream, int64_t n, const uint8_t* from, float* to) {
  return LaunchDecodeShorts<Float16>(stream, n, from, to);
}

cudaError_t LaunchDecodeBfloat16(cudaStream_t stream, int64_t n, const uint8_t* from, float* to) {
  return LaunchDecodeShorts<Bfloat16>(stream, n, from, to);
}

}  // namespace keelson::cuda
