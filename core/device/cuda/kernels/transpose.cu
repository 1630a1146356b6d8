// The elements of arrays of three axes with the axes in another order.
#include <limits>

#include "core/device/cuda/kernels/divisor.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"

namespace keelson::cuda {
namespace {

// What a thread needs to find an element of y in x: the extents of y's last two axes, and for each
// of its last three the step in x from one element to the next.
template <typename Index>
struct TransposeSteps {
  Divisor<Index> middle;
  Divisor<Index> last;
  Divisor<Index> first;
  Index example;  // elements
  Index steps[3];
};

template <typename Index>
TransposeSteps<Index> StepsOf(const TransposeGeometry& geometry) {
  const int64_t* const in = geometry.extents;
  const int64_t strides[] = {in[1] * in[2], in[2], 1};
  const auto extent = [&](int axis) { return Divisor<Index>(in[geometry.axes[axis]]); };
  TransposeSteps<Index> result = {
      extent(1), extent(2), extent(0), static_cast<Index>(in[0] * in[1] * in[2]), {}};
  for (int k = 0; k < 3; ++k) result.steps[k] = static_cast<Index>(strides[geometry.axes[k]]);
  return result;
}

// Elements of y lie side by side for a warp's threads, those of x may not.
template <typename Index>
__global__ void __launch_bounds__(kThreads)
    TransposeKernel(TransposeSteps<Index> geometry, int64_t n, const float* __restrict__ x,
                    float* __restrict__ y) {
  for (int64_t at = ThreadIndex(); at < n; at += ThreadCount()) {
    const Division<Index> by_last = DivideBy(geometry.last, static_cast<Index>(at));
    const Division<Index> by_middle = DivideBy(geometry.middle, by_last.quotient);
    const Division<Index> by_first = DivideBy(geometry.first, by_middle.quotient);
    y[at] = x[by_first.quotient * geometry.example + by_first.remainder * geometry.steps[0] +
              by_middle.remainder * geometry.steps[1] + by_last.remainder * geometry.steps[2]];
  }
}

}  // namespace

cudaError_t LaunchTranspose(cudaStream_t stream, const TransposeGeometry& geometry, const float* x,
                            float* y) {
  const int64_t n = geometry.size();
  if (n == 0) return cudaSuccess;
  const unsigned blocks = BlocksFor(n);
  return n <= std::numeric_limits<int32_t>::max()
             ? Launch(TransposeKernel<int32_t>, blocks, stream, StepsOf<int32_t>(geometry), n, x, y)
             : Launch(TransposeKernel<int64_t>, blocks, stream, StepsOf<int64_t>(geometry), n, x,
                      y);
}

}  // namespace keelson::cuda
