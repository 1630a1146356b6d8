// The emulation's stand-in for CUDA's header of this name: the part of it that Keelson uses.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUBLAS_V2_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUBLAS_V2_H_

#include <cstdint>

#include "cuda_runtime_api.h"

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
};
typedef struct cublasContext* cublasHandle_t;

const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);

// All matrices column by column; alpha and beta in the host's memory.
cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t operation_a,
                              cublasOperation_t operation_b, int64_t m, int64_t n, int64_t k,
                              const float* alpha, const float* a, int64_t lda, const float* b,
                              int64_t ldb, const float* beta, float* c, int64_t ldc);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t operation_a,
                           cublasOperation_t operation_b, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc);
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                               cublasOperation_t operation_b, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType type_a, int64_t lda,
                               const void* b, cudaDataType type_b, int64_t ldb, const void* beta,
                               void* c, cudaDataType type_c, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t operation_a,
                            cublasOperation_t operation_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUBLAS_V2_H_
