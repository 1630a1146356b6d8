#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "testing/device/cuda_emulation/call.h"
#include "testing/device/cuda_emulation/enqueue_product.h"

struct cublasContext {
  int gpu = 0;
  cudaStream_t stream = nullptr;
  bool tf32 = false;
};

namespace keelson::cuda_emulation {
namespace {

constexpr char kHandles[] = "cuBLAS handles";

// Whether the product's memory may be used; complains otherwise.
bool Usable(Machine* machine, const Product& p, int gpu) {
  const size_t m = p.m(), n = p.n();
  const struct {
    const char* name;
    const void* data;
    size_t bytes;
  } operands[] = {
      {"A", p.a.data, p.a.bytes()},
      {"B", p.b.data, p.b.bytes()},
      {"C", p.beta == 0 ? nullptr : p.c.data, p.c.bytes()},
      {"D", p.d.data, p.d.bytes()},
      {"bias", p.bias, m * sizeof(float)},
      {"gradient of the bias", p.row_sums, m * sizeof(float)},
      {"gradient of the bias", p.column_sums, n * sizeof(float)},
  };
  for (const auto& operand : operands) {
    if (operand.data == nullptr) continue;
    const std::string misuse = machine->Misuse(gpu, operand.data, operand.bytes);
    if (misuse.empty()) continue;
    machine->Complain(absl::StrCat("a product's ", operand.name, ": ", misuse));
    return false;
  }
  return true;
}

}  // namespace

cublasStatus_t EnqueueProduct(Machine* machine, const Product& product, int gpu,
                              cudaStream_t handle, void* workspace, size_t workspace_bytes) {
  CUstream_st* const stream = machine->Find(handle, gpu);
  if (gpu != CurrentGpu() || stream == nullptr || stream->gpu != gpu) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (machine->gpu(gpu).error != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!Usable(machine, product, gpu)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (workspace_bytes > 0 && !machine->Misuse(gpu, workspace, workspace_bytes).empty()) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (stream->capture == nullptr) ++machine->statistics().products;
  const cudaError_t error = machine->Enqueue(stream, machine->KernelMemories(gpu), [=]() -> int {
    if (!Usable(machine, product, gpu)) return cudaErrorIllegalAddress;
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    Multiply(product);
    return cudaSuccess;
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace keelson::cuda_emulation

namespace emulation = keelson::cuda_emulation;

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown cuBLAS status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the emulated cuBLAS failed";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return emulation::BlasCall("cublasCreate", [&](emulation::Machine* machine) {
    *handle =
        machine->MakeLibraryObject(emulation::kHandles, cublasContext{emulation::CurrentGpu()});
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return emulation::BlasCall("cublasDestroy", [&](emulation::Machine* machine) {
    return machine->DestroyLibraryObject(handle) ? CUBLAS_STATUS_SUCCESS
                                                 : CUBLAS_STATUS_NOT_INITIALIZED;
  });
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->tf32 = mode == CUBLAS_TF32_TENSOR_OP_MATH;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                               cublasOperation_t operation_b, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType type_a, int64_t lda,
                               const void* b, cudaDataType type_b, int64_t ldb, const void* beta,
                               void* c, cudaDataType type_c, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t) {
  return emulation::BlasCall("cublasGemmEx", [&](emulation::Machine* machine) {
    emulation::Product product;
    product.transpose_a = operation_a == CUBLAS_OP_T;
    product.transpose_b = operation_b == CUBLAS_OP_T;
    product.a = {a, type_a, product.transpose_a ? k : m, product.transpose_a ? m : k, lda};
    product.b = {b, type_b, product.transpose_b ? n : k, product.transpose_b ? k : n, ldb};
    product.c = product.d = {c, type_c, m, n, ldc};
    product.alpha = *static_cast<const float*>(alpha);
    product.beta = *static_cast<const float*>(beta);
    product.compute =
        handle->tf32 && compute == CUBLAS_COMPUTE_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : compute;
    if (!product.Consistent()) return CUBLAS_STATUS_INVALID_VALUE;
    return emulation::EnqueueProduct(machine, product, handle->gpu, handle->stream, nullptr, 0);
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t operation_a,
                            cublasOperation_t operation_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmEx_64(handle, operation_a, operation_b, m, n, k, alpha, a, type_a, lda, b,
                         type_b, ldb, beta, c, type_c, ldc, compute, algorithm);
}

cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t operation_a,
                              cublasOperation_t operation_b, int64_t m, int64_t n, int64_t k,
                              const float* alpha, const float* a, int64_t lda, const float* b,
                              int64_t ldb, const float* beta, float* c, int64_t ldc) {
  return cublasGemmEx_64(handle, operation_a, operation_b, m, n, k, alpha, a, CUDA_R_32F, lda, b,
                         CUDA_R_32F, ldb, beta, c, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t operation_a,
                           cublasOperation_t operation_b, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc) {
  return cublasSgemm_64(handle, operation_a, operation_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                        ldc);
}
