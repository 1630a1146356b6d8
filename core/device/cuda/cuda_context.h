// The state that the operations of a CUDA device share: the GPU, its streams, its cuBLASLt handle
// and the first failure.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/device/device.h"
#include "core/device/precision.h"

namespace keelson {

// An operand and the elements that the operation touches.
struct CudaExtent {
  const DeviceMemory* memory;  // null: not used
  int64_t size;
};

// Owns the streams and the handle. Used by one thread at a time, not always the same one.
class CudaContext {
 public:
  // FAILED_PRECONDITION: no usable GPU `ordinal`; "device cuda: no CUDA device: REASON".
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(int ordinal, Precision precision);
  // Waits for the streams.
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int ordinal() const { return ordinal_; }
  Precision precision() const { return precision_; }
  // Operations, copies to the device and copies from it.
  cudaStream_t compute() const { return compute_; }
  cudaStream_t upload() const { return upload_; }
  cudaStream_t download() const { return download_; }
  cublasLtHandle_t blas() const { return blas_; }
  // "cuda:0 (NVIDIA H200, compute capability 9.0, CUDA 13.0, tf32)"
  const std::string& name() const { return name_; }
  // The first failure; OK before it.
  const absl::Status& status() const { return status_; }

  // Starts `operation` (a literal, for error texts): makes the GPU the calling thread's. False
  // after an earlier failure and when an operand is too small: then the caller does nothing more.
  bool Begin(const char* operation, std::initializer_list<CudaExtent> extents = {});
  // The same for operations that must not be repeated: also false within Device::Repeat.
  bool BeginUnrepeated(const char* operation, std::initializer_list<CudaExtent> extents = {});
  // The same for operations that free memory, which also run after a failure.
  void BeginRelease();
  // Whether the call named `call` succeeded; a failure becomes the status.
  bool Check(const char* call, cudaError_t result);
  bool Check(const char* call, cublasStatus_t result);
  // Sets the status unless there is a failure already.
  void Fail(absl::Status status);
  // INTERNAL, "device cuda:0: OPERATION: TEXT".
  absl::Status Error(absl::string_view text) const { return absl::InternalError(InContext(text)); }
  // RESOURCE_EXHAUSTED or INTERNAL for a failed cudaMalloc or cudaHostAlloc of `bytes`, which is no
  // failure of the streams.
  absl::Status AllocationError(size_t bytes, cudaError_t result) const;
  absl::Status HostAllocationError(size_t bytes, cudaError_t result) const;

  // Work put on `later` after this call waits for the work on `earlier` so far.
  bool Order(cudaStream_t earlier, cudaStream_t later);
  // Operations after this call wait for those of `peer` so far.
  bool WaitForPeer(CudaContext* peer);
  // Waits for all streams.
  bool SynchronizeStreams();

  // Device::Repeat runs or captures operations from BeginRepeat to EndRepeat. `capture` is the
  // number of the capture under way, 0: none.
  void BeginRepeat(bool captured);
  void EndRepeat();
  int64_t capture() const { return capture_; }
  // Counts freed memory: a graph that was captured before may use it.
  void CountFree() { ++frees_; }
  int64_t frees() const { return frees_; }

 private:
  CudaContext(int ordinal, Precision precision) : ordinal_(ordinal), precision_(precision) {}
  absl::Status Open();
  absl::Status Describe();
  // "device cuda:0: OPERATION: TEXT"
  std::string InContext(absl::string_view text) const;

  const int ordinal_;
  const Precision precision_;
  cudaStream_t compute_ = nullptr;
  cudaStream_t upload_ = nullptr;
  cudaStream_t download_ = nullptr;
  cudaEvent_t order_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  std::string name_;
  const char* operation_ = "";
  absl::Status status_;
  bool repeating_ = false;
  int64_t capture_ = 0;
  int64_t captures_ = 0;
  int64_t frees_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_CONTEXT_H_
