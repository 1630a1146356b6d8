#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "testing/device/cuda_emulation/call.h"
#include "testing/device/cuda_emulation/enqueue_product.h"

struct cublasLtContext {
  int gpu = 0;
};
struct cublasLtMatrixLayoutOpaque_t {
  keelson::cuda_emulation::Matrix matrix;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t operation_a = CUBLAS_OP_N;
  cublasOperation_t operation_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* vector = nullptr;
  cudaDataType vector_type = CUDA_R_32F;
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace_bytes = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
};

namespace keelson::cuda_emulation {
namespace {

constexpr char kLtHandles[] = "cuBLASLt handles";
constexpr char kDescriptions[] = "cuBLASLt descriptions";
constexpr uint64_t kAlgorithmMark = 0x656d756c61746564;
// What an algorithm uses where it may have that much.
constexpr uint64_t kWorkspaceBytes = 4096;
// The required alignment of an epilogue's vector; without it the emulation has no algorithm.
constexpr uintptr_t kVectorAlignment = 16;

template <typename T>
cublasStatus_t Create(const char* call, const char* what, T object, T** made) {
  return BlasCall(call, [&](Machine* machine) {
    *made = machine->MakeLibraryObject(what, std::move(object));
    return CUBLAS_STATUS_SUCCESS;
  });
}

template <typename T>
cublasStatus_t Destroy(const char* call, T* object) {
  return BlasCall(call, [&](Machine* machine) {
    return machine->DestroyLibraryObject(object) ? CUBLAS_STATUS_SUCCESS
                                                 : CUBLAS_STATUS_INVALID_VALUE;
  });
}

template <typename T>
cublasStatus_t Set(const void* value, size_t bytes, T* to) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool Known(cublasLtEpilogue_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
  }
  return false;
}

bool UsesVector(cublasLtEpilogue_t epilogue) {
  return epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_RELU;
}

// Whether there is an algorithm; real ones are as choosy about the vector's address.
bool Supported(const cublasLtMatmulDescOpaque_t& description) {
  if (!Known(description.epilogue) || description.vector_type != CUDA_R_32F) return false;
  return !UsesVector(description.epilogue) ||
         reinterpret_cast<uintptr_t>(description.vector) % kVectorAlignment == 0;
}

Product Described(const cublasLtMatmulDescOpaque_t& description, const Matrix& a, const Matrix& b,
                  const Matrix& c, const Matrix& d) {
  Product product;
  product.a = a;
  product.b = b;
  product.c = c;
  product.d = d;
  product.transpose_a = description.operation_a == CUBLAS_OP_T;
  product.transpose_b = description.operation_b == CUBLAS_OP_T;
  product.compute = description.compute;
  const cublasLtEpilogue_t epilogue = description.epilogue;
  product.relu = epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  if (epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) {
    product.bias = description.vector;
  }
  if (epilogue == CUBLASLT_EPILOGUE_BGRADA) product.row_sums = description.vector;
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB) product.column_sums = description.vector;
  return product;
}

// A number of what an algorithm was chosen for.
uint64_t Fingerprint(const Product& product, cublasLtEpilogue_t epilogue) {
  uint64_t hash = 14695981039346656037u;
  for (int64_t part :
       {product.m(), product.n(), product.k(), product.a.ld, product.b.ld, product.d.ld,
        int64_t{product.a.type}, int64_t{product.compute}, int64_t{product.transpose_a},
        int64_t{product.transpose_b}, int64_t{epilogue}}) {
    hash = (hash ^ static_cast<uint64_t>(part)) * 1099511628211u;
  }
  return hash;
}

// In place of the addresses that are not known yet.
Matrix WithAlignment(Matrix matrix, uint32_t alignment) {
  matrix.data = reinterpret_cast<const void*>(uintptr_t{alignment});
  return matrix;
}

}  // namespace
}  // namespace keelson::cuda_emulation

namespace emulation = keelson::cuda_emulation;

const char* cublasLtGetStatusName(cublasStatus_t status) {
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

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the emulated cuBLAS failed";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return emulation::Create("cublasLtCreate", emulation::kLtHandles,
                           cublasLtContext{emulation::CurrentGpu()}, handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return emulation::Destroy("cublasLtDestroy", handle);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  const emulation::Matrix matrix = {nullptr, type, static_cast<int64_t>(rows),
                                    static_cast<int64_t>(cols), ld};
  return emulation::Create("cublasLtMatrixLayoutCreate", emulation::kDescriptions,
                           cublasLtMatrixLayoutOpaque_t{matrix}, layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return emulation::Destroy("cublasLtMatrixLayoutDestroy", layout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute, cudaDataType_t scale_type) {
  if (scale_type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return emulation::Create("cublasLtMatmulDescCreate", emulation::kDescriptions,
                           cublasLtMatmulDescOpaque_t{compute}, description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return emulation::BlasCall("cublasLtMatmulDescSetAttribute", [&](emulation::Machine*) {
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return emulation::Set(value, bytes, &description->operation_a);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return emulation::Set(value, bytes, &description->operation_b);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return emulation::Set(value, bytes, &description->epilogue);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return emulation::Set(value, bytes, &description->vector);
      case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return emulation::Set(value, bytes, &description->vector_type);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return emulation::Destroy("cublasLtMatmulDescDestroy", description);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return emulation::Create("cublasLtMatmulPreferenceCreate", emulation::kDescriptions,
                           cublasLtMatmulPreferenceOpaque_t{}, preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return emulation::BlasCall("cublasLtMatmulPreferenceSetAttribute", [&](emulation::Machine*) {
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return emulation::Set(value, bytes, &preference->workspace_bytes);
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return emulation::Set(value, bytes, &preference->reduction_schemes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return emulation::Set(value, bytes, &preference->alignments[0]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return emulation::Set(value, bytes, &preference->alignments[1]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return emulation::Set(value, bytes, &preference->alignments[2]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return emulation::Set(value, bytes, &preference->alignments[3]);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
  });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return emulation::Destroy("cublasLtMatmulPreferenceDestroy", preference);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  return emulation::BlasCall("cublasLtMatmulAlgoGetHeuristic", [&](emulation::Machine*) {
    *count = 0;
    if (handle == nullptr || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
    const emulation::Product product = emulation::Described(
        *description, emulation::WithAlignment(a->matrix, preference->alignments[0]),
        emulation::WithAlignment(b->matrix, preference->alignments[1]),
        emulation::WithAlignment(c->matrix, preference->alignments[2]),
        emulation::WithAlignment(d->matrix, preference->alignments[3]));
    if (!product.Consistent()) return CUBLAS_STATUS_INVALID_VALUE;
    if (!emulation::Supported(*description)) return CUBLAS_STATUS_NOT_SUPPORTED;
    const uint64_t workspace = std::min(preference->workspace_bytes, emulation::kWorkspaceBytes);
    cublasLtMatmulHeuristicResult_t result = {};
    result.algo.data[0] = emulation::kAlgorithmMark;
    result.algo.data[1] = emulation::Fingerprint(product, description->epilogue);
    result.algo.data[2] = workspace;
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    *results = result;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  return emulation::BlasCall("cublasLtMatmul", [&](emulation::Machine* machine) {
    if (handle == nullptr || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    emulation::Product product = emulation::Described(
        *description, layout_a->matrix, layout_b->matrix, layout_c->matrix, layout_d->matrix);
    product.a.data = a;
    product.b.data = b;
    product.c.data = c;
    product.d.data = d;
    product.alpha = *static_cast<const float*>(alpha);
    product.beta = *static_cast<const float*>(beta);
    if (!product.Consistent()) return CUBLAS_STATUS_INVALID_VALUE;
    if (emulation::UsesVector(description->epilogue) && description->vector == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!emulation::Supported(*description)) return CUBLAS_STATUS_NOT_SUPPORTED;
    uint64_t needed = 0;
    if (algorithm != nullptr) {
      if (algorithm->data[0] != emulation::kAlgorithmMark ||
          algorithm->data[1] != emulation::Fingerprint(product, description->epilogue)) {
        return CUBLAS_STATUS_INVALID_VALUE;
      }
      needed = algorithm->data[2];
    }
    if (needed > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    return emulation::EnqueueProduct(machine, product, handle->gpu, stream, workspace, needed);
  });
}
