#include "core/device/cuda/element_math.h"
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace keelson::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) FillKernel(float value, int64_t n, float* x) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) x[i] = value;
}

__global__ void __launch_bounds__(kThreads)
    AxpyKernel(float alpha, int64_t n, const float* x, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] += alpha * x[i];
}

__global__ void __launch_bounds__(kThreads) ScaleKernel(float alpha, int64_t n, float* x) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) x[i] *= alpha;
}

__global__ void __launch_bounds__(kThreads)
    AddBiasKernel(int64_t n, int64_t cols, const float* bias, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] += bias[i % cols];
}

__global__ void __launch_bounds__(kThreads)
    ActivateKernel(ActivationKind kind, int64_t n, const float* x, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] = Activated(kind, x[i]);
}

__global__ void __launch_bounds__(kThreads)
    ActivateBackwardKernel(ActivationKind kind, int64_t n, const float* y, const float* dy,
                           float* dx) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    dx[i] = ActivationGradient(kind, y[i], dy[i]);
  }
}

__global__ void __launch_bounds__(kThreads)
    DropoutKernel(float rate, uint64_t seed, int64_t n, const float* x, float* y) {
  const int64_t groups = (n + 3) / 4;
  for (int64_t group = ThreadIndex(); group < groups; group += ThreadCount()) {
    DropoutGroup(rate, seed, group, n, x, y);
  }
}

}  // namespace

cudaError_t FindKernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, FillKernel);
}

cudaError_t LaunchFill(cudaStream_t stream, float value, int64_t n, float* x) {
  if (n == 0) return cudaSuccess;
  FillKernel<<<BlocksFor(n), kThreads, 0, stream>>>(value, n, x);
  return cudaGetLastError();
}

cudaError_t LaunchAxpy(cudaStream_t stream, float alpha, int64_t n, const float* x, float* y) {
  if (n == 0) return cudaSuccess;
  AxpyKernel<<<BlocksFor(n), kThreads, 0, stream>>>(alpha, n, x, y);
  return cudaGetLastError();
}

cudaError_t LaunchScale(cudaStream_t stream, float alpha, int64_t n, float* x) {
  if (n == 0) return cudaSuccess;
  ScaleKernel<<<BlocksFor(n), kThreads, 0, stream>>>(alpha, n, x);
  return cudaGetLastError();
}

cudaError_t LaunchAddBias(cudaStream_t stream, int64_t rows, int64_t cols, const float* bias,
                          float* y) {
  const int64_t n = rows * cols;
  if (n == 0) return cudaSuccess;
  AddBiasKernel<<<BlocksFor(n), kThreads, 0, stream>>>(n, cols, bias, y);
  return cudaGetLastError();
}

cudaError_t LaunchActivate(cudaStream_t stream, ActivationKind kind, int64_t n, const float* x,
                           float* y) {
  if (n == 0) return cudaSuccess;
  ActivateKernel<<<BlocksFor(n), kThreads, 0, stream>>>(kind, n, x, y);
  return cudaGetLastError();
}

cudaError_t LaunchActivateBackward(cudaStream_t stream, ActivationKind kind, int64_t n,
                                   const float* y, const float* dy, float* dx) {
  if (n == 0) return cudaSuccess;
  ActivateBackwardKernel<<<BlocksFor(n), kThreads, 0, stream>>>(kind, n, y, dy, dx);
  return cudaGetLastError();
}

cudaError_t LaunchDropout(cudaStream_t stream, float rate, uint64_t seed, int64_t n, const float* x,
                          float* y) {
  if (n == 0) return cudaSuccess;
  DropoutKernel<<<BlocksFor((n + 3) / 4), kThreads, 0, stream>>>(rate, seed, n, x, y);
  return cudaGetLastError();
}

}  // namespace keelson::cuda
