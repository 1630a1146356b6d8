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
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

const char* cublasGetStatusString(cublasStatus_t status);

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUBLAS_V2_H_
