// The operations of CudaDevice on the rows of matrices.
#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson {

void CudaDevice::MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x,
                                float beta, DeviceMemory* y) {
  if (!context_->Begin("MultiplySparse",
                       {{a.stored, 1}, {a.rows, a.capacity}, {a.offsets, a.capacity + 1}})) {
    return;
  }
  const cuda::SparseArrays arrays{a.capacity,
                                  a.stored->integers(),
                                  a.rows->integers(),
                                  a.offsets->integers(),
                                  a.columns->integers(),
                                  a.coefficients->data()};
  context_->Check(
      "MultiplySparseKernel",
      cuda::LaunchMultiplySparse(context_->compute(), arrays, width, x.data(), beta, y->data()));
}

void CudaDevice::ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                           DeviceMemory* x) {
  if (!context_->Begin("ScaleRows", {{&factors, rows}, {x, rows * columns}})) return;
  context_->Check("ScaleRowsKernel", cuda::LaunchScaleRows(context_->compute(), rows, columns,
                                                           factors.data(), x->data()));
}

void CudaDevice::AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                              DeviceMemory* x) {
  if (!context_->Begin("AddRowVector", {{&v, columns}, {x, rows * columns}})) return;
  context_->Check("AddRowVectorKernel", cuda::LaunchAddRowVector(context_->compute(), rows, columns,
                                                                 alpha, v.data(), x->data()));
}

void CudaDevice::RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
                         const DeviceMemory& b, float beta, DeviceMemory* y) {
  const int64_t size = rows * columns;
  if (!context_->Begin("RowDots", {{&a, size}, {&b, size}, {y, rows}})) return;
  context_->Check("RowDotsKernel", cuda::LaunchRowDots(context_->compute(), rows, columns, alpha,
                                                       a.data(), b.data(), beta, y->data()));
}

void CudaDevice::AddScaledRows(int64_t rows, int64_t columns, float alpha,
                               const DeviceMemory& factors, const DeviceMemory& x, float beta,
                               DeviceMemory* y) {
  const int64_t size = rows * columns;
  if (!context_->Begin("AddScaledRows", {{&factors, rows}, {&x, size}, {y, size}})) return;
  context_->Check("AddScaledRowsKernel",
                  cuda::LaunchAddScaledRows(context_->compute(), rows, columns, alpha,
                                            factors.data(), x.data(), beta, y->data()));
}

void CudaDevice::PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x,
                              DeviceMemory* y) {
  const int64_t size = geometry.rows * geometry.vectors * geometry.dim;
  if (!context_->Begin("PairwiseDots", {{&x, size}, {y, geometry.rows * geometry.pairs()}})) return;
  context_->Check("PairwiseDotsKernel",
                  cuda::LaunchPairwiseDots(context_->compute(), geometry, x.data(), y->data()));
}

void CudaDevice::PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                                      const DeviceMemory& dy, DeviceMemory* dx) {
  const int64_t size = geometry.rows * geometry.vectors * geometry.dim;
  if (!context_->Begin("PairwiseDotsBackward",
                       {{&x, size}, {&dy, geometry.rows * geometry.pairs()}, {dx, size}})) {
    return;
  }
  context_->Check("PairwiseDotsBackwardKernel",
                  cuda::LaunchPairwiseDotsBackward(context_->compute(), geometry, x.data(),
                                                   dy.data(), dx->data()));
}

void CudaDevice::Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                           DeviceMemory* y) {
  if (!context_->Begin("Transpose", {{&x, geometry.size()}, {y, geometry.size()}})) return;
  context_->Check("TransposeKernel",
                  cuda::LaunchTranspose(context_->compute(), geometry, x.data(), y->data()));
}

}  // namespace keelson
