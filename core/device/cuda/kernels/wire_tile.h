// How a thread block reads and writes a tile of an array: four elements to a thread; for .cu files.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TILE_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TILE_H_

#include <cstdint>

#include "core/device/cuda/kernels/host_device.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"
#include "core/device/cuda/kernels/wire_math.h"

namespace keelson::cuda {

static_assert(kWireTileElements == 4 * kThreads, "each thread has four elements");

// A thread's elements of a tile: those from `first` on that are below the tile's end.
struct TileShare {
  int first;
  int count;   // 0 to 4
  bool whole;  // 4
};

// `whole` is not computed from `count`: CUDA 13.0's ptxas takes "the clamped number is 4" for true
// of 0, too, when it has both from one instruction of sm_90 (VIMNMX.RELU).
__device__ inline TileShare TileShareOf(const WireTile& tile) {
  const int first = 4 * static_cast<int>(threadIdx.x), left = tile.num_elements - first;
  return {first, left < 0 ? 0 : (left < 4 ? left : 4), left >= 4};
}

__device__ inline bool IsWholePack(const float* array, const WireTile& tile, TileShare share) {
  return share.whole &&
         reinterpret_cast<uintptr_t>(array + tile.first_element) % sizeof(Pack<4>) == 0;
}

// Zeros beyond the end.
__device__ inline Pack<4> LoadShare(const float* array, const WireTile& tile, TileShare share) {
  const float* const from = array + tile.first_element + share.first;
  if (IsWholePack(array, tile, share)) return LoadPack<4>(from);
  Pack<4> pack = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < share.count) pack.lane[k] = from[k];
  }
  return pack;
}

__device__ inline void StoreShare(Pack<4> pack, const WireTile& tile, TileShare share,
                                  float* array) {
  float* const to = array + tile.first_element + share.first;
  if (IsWholePack(array, tile, share)) {
    StorePack(pack, to);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < share.count) to[k] = pack.lane[k];
  }
}

// gradient + residual of a thread's elements.
__device__ inline Pack<4> LoadWithResidual(const float* gradient, const float* residual,
                                           const WireTile& tile, TileShare share) {
  Pack<4> x = LoadShare(gradient, tile, share);
  const Pack<4> rest = LoadShare(residual, tile, share);
#pragma unroll
  for (int k = 0; k < 4; ++k) x.lane[k] = WithResidual(x.lane[k], rest.lane[k]);
  return x;
}

__device__ inline bool IsClosed(const float* gate) { return gate != nullptr && !IsFinite(*gate); }

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TILE_H_
