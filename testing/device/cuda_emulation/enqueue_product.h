// Enqueues a product for cuBLAS and cuBLASLt.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_ENQUEUE_PRODUCT_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_ENQUEUE_PRODUCT_H_

#include "testing/device/cuda_emulation/machine.h"
#include "testing/device/cuda_emulation/matrix_product.h"

namespace keelson::cuda_emulation {

// Puts a consistent product on a stream of `gpu`, the calling thread's. `workspace` is overwritten.
cublasStatus_t EnqueueProduct(Machine* machine, const Product& product, int gpu,
                              cudaStream_t stream, void* workspace, size_t workspace_bytes);

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_ENQUEUE_PRODUCT_H_
