// What the operations of a CUDA device share: the GPU, its stream, its cuBLAS handle and the first
// failure.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace keelson {

// An operand and the elements that the operation touches.
struct CudaExtent {
  const DeviceMemory* memory;  // null: not used
  int64_t size;
};

// Owns the stream and the handle. Used by one thread at a time, not always the same one.
class CudaContext {
 public:
  // FAILED_PRECONDITION: no usable GPU `ordinal`; "device cuda: no CUDA device: REASON".
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(int ordinal);
  // Waits for the stream.
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int ordinal() const { return ordinal_; }
  cudaStream_t stream() const { return stream_; }
  cublasHandle_t blas() const { return blas_; }
  // "cuda:0 (NVIDIA H200, compute capability 9.0, CUDA 13.0)"
  const std::string& name() const { return name_; }
  // The first failure; OK before it.
  const absl::Status& status() const { return status_; }

  // Starts `operation` (a literal, for error texts): makes the GPU the calling thread's. False
  // after an earlier failure and when an operand is too small: then the caller does nothing more.
  bool Begin(const char* operation, std::initializer_list<CudaExtent> extents = {});
  // Whether the call named `call` succeeded; a failure becomes the status.
  bool Check(const char* call, cudaError_t result);
  bool Check(const char* call, cublasStatus_t result);
  // Becomes the status unless there is a failure already.
  void Fail(absl::Status status);

  // RESOURCE_EXHAUSTED or INTERNAL for a failed allocation of `bytes`, which is no failure of the
  // stream.
  absl::Status AllocationError(size_t bytes, cudaError_t result);

 private:
  explicit CudaContext(int ordinal) : ordinal_(ordinal) {}
  absl::Status Open();
  absl::Status Describe();

  const int ordinal_;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::string name_;
  const char* operation_ = "";
  absl::Status status_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_
