#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/launch.h"
#include "core/device/cuda/kernels/window_math.h"
#include "core/device/cuda/kernels/wire_math.h"

namespace keelson::cuda {
namespace {

// Elements of the columns that a thread writes at once.
constexpr int kRun = 4;

__device__ void StoreRun(Pack<kRun> run, float* to) { StorePack(run, to); }
__device__ void StoreRun(Pack<kRun> run, uint16_t* to) {
  *reinterpret_cast<ushort4*>(to) = make_ushort4(ToBfloat16(run.lane[0]), ToBfloat16(run.lane[1]),
                                                 ToBfloat16(run.lane[2]), ToBfloat16(run.lane[3]));
}

__device__ void StoreElement(float x, float* to) { *to = x; }
__device__ void StoreElement(float x, uint16_t* to) { *to = ToBfloat16(x); }

// Runs of n elements of the columns. kPack kRun: a run is a pack of channels; kPack 1: elements one
// by one, which saves all but the first one's divisions.
template <int kPack, typename Index, typename Element>
__global__ void __launch_bounds__(kThreads)
    ImageToColumnsKernel(const ColumnWindows<Index> windows, int64_t n, const float* __restrict__ x,
                         Element* __restrict__ columns) {
  const int64_t runs = (n + kRun - 1) / kRun;
#pragma unroll 2
  for (int64_t i = ThreadIndex(); i < runs; i += ThreadCount()) {
    ColumnPlace<Index> place =
        ColumnPlaceOf(windows, static_cast<Index>(kPack == kRun ? i : i * kRun));
    Pack<kRun> run = {};
    if constexpr (kPack == kRun) {
      run = ColumnsPack<kPack>(windows, x, place);
    } else {
      const int64_t left = n - i * kRun;
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        if (k >= left) continue;
        run.lane[k] = ColumnsPack<1>(windows, x, place).lane[0];
        Advance(windows, &place);
      }
      if (left < kRun) {
#pragma unroll
        for (int k = 0; k < kRun; ++k) {
          if (k < left) StoreElement(run.lane[k], columns + i * kRun + k);
        }
        continue;
      }
    }
    StoreRun(run, columns + i * kRun);
  }
}

template <int kPack, typename Index>
__global__ void __launch_bounds__(kThreads)
    ColumnsToImageKernel(const ColumnWindows<Index> windows, int64_t packs,
                         const float* __restrict__ dcolumns, float* __restrict__ dx) {
  for (int64_t i = ThreadIndex(); i < packs; i += ThreadCount()) {
    StorePack(ColumnsGradient<kPack>(windows, dcolumns, static_cast<Index>(i)), dx + kPack * i);
  }
}

int64_t ColumnElements(const ConvGeometry& g) {
  return g.batch * g.out_height * g.out_width * g.kernel * g.kernel * g.in_channels;
}

// Whether 32 bits hold the index of every element.
bool IsSmall(const ConvGeometry& g) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return ColumnElements(g) < kMost && g.in_size() < kMost;
}

template <int kPack, typename Index, typename Element>
cudaError_t LaunchColumns(cudaStream_t stream, const ConvGeometry& g, const float* x,
                          Element* columns) {
  const int64_t n = ColumnElements(g);
  return Launch(ImageToColumnsKernel<kPack, Index, Element>, BlocksFor((n + kRun - 1) / kRun),
                stream, ColumnWindowsOf<Index>(g, kPack), n, x, columns);
}

// `columns` is aligned to a run.
template <typename Element>
cudaError_t LaunchColumnsAs(cudaStream_t stream, const ConvGeometry& g, const float* x,
                            Element* columns) {
  if (ColumnElements(g) == 0) return cudaSuccess;
  if (!IsAligned(columns, kRun * sizeof(Element))) return cudaErrorInvalidValue;
  const bool packs = g.in_channels % kRun == 0 && IsAligned(x, sizeof(Pack<kRun>));
  if (!IsSmall(g)) return LaunchColumns<1, int64_t>(stream, g, x, columns);
  return packs ? LaunchColumns<kRun, int32_t>(stream, g, x, columns)
               : LaunchColumns<1, int32_t>(stream, g, x, columns);
}

template <int kPack, typename Index>
cudaError_t LaunchImage(cudaStream_t stream, const ConvGeometry& g, const float* dcolumns,
                        float* dx) {
  const int64_t packs = g.in_size() / kPack;
  return Launch(ColumnsToImageKernel<kPack, Index>, BlocksFor(packs), stream,
                ColumnWindowsOf<Index>(g, kPack), packs, dcolumns, dx);
}

}  // namespace

cudaError_t LaunchImageToColumns(cudaStream_t stream, const ConvGeometry& geometry, const float* x,
                                 float* columns) {
  return LaunchColumnsAs(stream, geometry, x, columns);
}

cudaError_t LaunchImageToBfloat16Columns(cudaStream_t stream, const ConvGeometry& geometry,
                                         const float* x, uint16_t* columns) {
  return LaunchColumnsAs(stream, geometry, x, columns);
}

cudaError_t LaunchColumnsToImage(cudaStream_t stream, const ConvGeometry& geometry,
                                 const float* dcolumns, float* dx) {
  if (geometry.in_size() == 0) return cudaSuccess;
  if (!IsSmall(geometry)) return LaunchImage<1, int64_t>(stream, geometry, dcolumns, dx);
  const bool packs = geometry.in_channels % 4 == 0 && IsAligned(dcolumns, sizeof(Pack<4>)) &&
                     IsAligned(dx, sizeof(Pack<4>));
  return packs ? LaunchImage<4, int32_t>(stream, geometry, dcolumns, dx)
               : LaunchImage<1, int32_t>(stream, geometry, dcolumns, dx);
}

}  // namespace keelson::cuda
