#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"
#include "core/device/cuda/window_math.h"

namespace keelson::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    ImageToColumnsKernel(ConvGeometry g, int64_t n, const float* x, float* columns) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) columns[i] = ColumnsElement(g, x, i);
}

__global__ void __launch_bounds__(kThreads)
    ColumnsToImageKernel(ConvGeometry g, int64_t n, const float* dcolumns, float* dx) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    dx[i] = ColumnsGradient(g, dcolumns, i);
  }
}

__global__ void __launch_bounds__(kThreads)
    MaxPoolKernel(PoolGeometry g, int64_t n, const float* x, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] = MaxPoolElement(g, x, i);
}

__global__ void __launch_bounds__(kThreads)
    MaxPoolBackwardKernel(PoolGeometry g, int64_t n, const float* x, const float* y,
                          const float* dy, float* dx) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    dx[i] = MaxPoolGradient(g, x, y, dy, i);
  }
}

__global__ void __launch_bounds__(kThreads)
    AvgPoolKernel(PoolGeometry g, int64_t n, const float* x, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] = AvgPoolElement(g, x, i);
}

__global__ void __launch_bounds__(kThreads)
    AvgPoolBackwardKernel(PoolGeometry g, int64_t n, const float* dy, float* dx) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) dx[i] = AvgPoolGradient(g, dy, i);
}

}  // namespace

cudaError_t LaunchImageToColumns(cudaStream_t stream, const ConvGeometry& geometry, const float* x,
                                 float* columns) {
  const ConvGeometry& g = geometry;
  const int64_t n = g.batch * g.out_height * g.out_width * g.kernel * g.kernel * g.in_channels;
  if (n == 0) return cudaSuccess;
  ImageToColumnsKernel<<<BlocksFor(n), kThreads, 0, stream>>>(g, n, x, columns);
  return cudaGetLastError();
}

cudaError_t LaunchColumnsToImage(cudaStream_t stream, const ConvGeometry& geometry,
                                 const float* dcolumns, float* dx) {
  const int64_t n = geometry.in_size();
  if (n == 0) return cudaSuccess;
  ColumnsToImageKernel<<<BlocksFor(n), kThreads, 0, stream>>>(geometry, n, dcolumns, dx);
  return cudaGetLastError();
}

cudaError_t LaunchMaxPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y) {
  const int64_t n = geometry.out_size();
  if (n == 0) return cudaSuccess;
  MaxPoolKernel<<<BlocksFor(n), kThreads, 0, stream>>>(geometry, n, x, y);
  return cudaGetLastError();
}

cudaError_t LaunchMaxPoolBackward(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                                  const float* y, const float* dy, float* dx) {
  const int64_t n = geometry.in_size();
  if (n == 0) return cudaSuccess;
  MaxPoolBackwardKernel<<<BlocksFor(n), kThreads, 0, stream>>>(geometry, n, x, y, dy, dx);
  return cudaGetLastError();
}

cudaError_t LaunchAvgPool(cudaStream_t stream, const PoolGeometry& geometry, const float* x,
                          float* y) {
  const int64_t n = geometry.out_size();
  if (n == 0) return cudaSuccess;
  AvgPoolKernel<<<BlocksFor(n), kThreads, 0, stream>>>(geometry, n, x, y);
  return cudaGetLastError();
}

cudaError_t LaunchAvgPoolBackward(cudaStream_t stream, const PoolGeometry& geometry,
                                  const float* dy, float* dx) {
  const int64_t n = geometry.in_size();
  if (n == 0) return cudaSuccess;
  AvgPoolBackwardKernel<<<BlocksFor(n), kThreads, 0, stream>>>(geometry, n, dy, dx);
  return cudaGetLastError();
}

}  // namespace keelson::cuda
