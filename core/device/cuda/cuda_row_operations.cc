// The operations of CudaDevice on the rows of matrices.
#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson {

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

}  // namespace keelson
