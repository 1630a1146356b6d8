// Matrix products by cuBLAS.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_

#include "core/device/cuda/cuda_context.h"
#include "core/device/geometry.h"

namespace keelson {

// c = alpha * op(a) op(b) + beta * c, row-major, on device addresses, in float32 throughout; within
// an operation begun on `context`, which takes a failure.
void CudaMatMul(const MatMulArgs& args, const float* a, const float* b, float* c,
                CudaContext* context);

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_MATMUL_H_
