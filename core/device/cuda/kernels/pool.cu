#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"
#include "core/device/cuda/kernels/pool_math.h"

namespace keelson::cuda {
namespace {

// One side's packs: pack i of the result is operation.At<kPack>(windows, i).
template <int kPack, typename Index, typename Operation>
__global__ void __launch_bounds__(kThreads)
    PoolKernel(const Windows<Index> windows, int64_t packs, Operation operation, float* result) {
  for (int64_t i = ThreadIndex(); i < packs; i += ThreadCount()) {
    StorePack(operation.template At<kPack>(windows, static_cast<Index>(i)), result + kPack * i);
  }
}

struct MaxPoolOperation {
  const float* x;
  template <int kPack, typename Index>
  __device__ Pack<kPack> At(const Windows<Index>& windows, Index i) const {
    return MaxPoolPack<kPack>(windows, x, i);
  }
};

struct MaxPoolBackwardOperation {
  const float* x;
  const float* y;
  const float* dy;
  template <int kPack, typename Index>
  __device__ Pack<kPack> At(const Windows<Index>& windows, Index i) const {
    return MaxPoolGradient<kPack>(windows, x, y, dy, i);
  }
};

struct AvgPoolOperation {
  const float* x;
  template <int kPack, typename Index>
  __device__ Pack<kPack> At(const Windows<Index>& windows, Index i) const {
    return AvgPoolPack<kPack>(windows, x, i);
  }
};

struct AvgPoolBackwardOperation {
  const float* dy;
  template <int kPack, typename Index>
  __device__ Pack<kPack> At(const Windows<Index>& windows, Index i) const {
    return AvgPoolGradient<kPack>(windows, dy, i);
  }
};

template <int kPack, typename Index, typename Operation>
cudaError_t LaunchPoolOf(cudaStream_t stream, const PoolGeometry& g, int64_t n,
                         const Operation& operation, float* result) {
  return Launch(PoolKernel<kPack, Index, Operation>, BlocksFor(n / kPack), stream,
                PoolWindowsOf<Index>(g, kPack), n / kPack, operation, result);
}

// n elements of the result. `aligned`: all arrays are at multiples of 16.
template <typename Operation>
cudaError_t LaunchPool(cudaStream_t stream, const PoolGeometry& g, int64_t n, bool aligned,
                       const Operation& operation, float* result) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (n == 0) return cudaSuccess;
  if (g.in_size() >= kMost || g.out_size() >= kMost) {
    return LaunchPoolOf<1, int64_t>(stream, g, n, operation, result);
  }
  if (aligned && g.channels % 4 == 0) {
    return LaunchPoolOf<4, int32_t>(stream, g, n, operation, result);
  }
  return LaunchPoolOf<1, int32_t>(stream, g, n, operation, result);
}

bool AreAligned(const float* a, const float* b) { return IsAligned(a, 16) && IsAligned(b, 16); }

}  // namespace

cudaError_t LaunchMaxPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y) {
  return LaunchPool(stream, geometry, geometry.out_size(), AreAligned(x, y), MaxPoolOperation{x},
                    y);
}

cudaError_t LaunchMaxPoolBackward(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                                  const float* y, const float* dy, float* dx) {
  return LaunchPool(stream, geometry, geometry.in_size(), AreAligned(x, y) && AreAligned(dy, dx),
                    MaxPoolBackwardOperation{x, y, dy}, dx);
}

cudaError_t LaunchAvgPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y) {
  return LaunchPool(stream, geometry, geometry.out_size(), AreAligned(x, y), AvgPoolOperation{x},
                    y);
}

cudaError_t LaunchAvgPoolBackward(cudaStream_t stream, const PoolGeometry& geometry,
                                  const float* dy, float* dx) {
  return LaunchPool(stream, geometry, geometry.in_size(), AreAligned(dy, dx),
                    AvgPoolBackwardOperation{dy}, dx);
}

}  // namespace keelson::cuda
