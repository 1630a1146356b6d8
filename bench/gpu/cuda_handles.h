// Owners of CUDA's handles, for the files here that call CUDA by itself.
#ifndef KEELSON_BENCH_GPU_CUDA_HANDLES_H_
#define KEELSON_BENCH_GPU_CUDA_HANDLES_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/gpu/timing.h"
#include "core/base/status_macros.h"

namespace keelson::bench {

// RESOURCE_EXHAUSTED: out of memory. INTERNAL: any other failure. The text has the call.
inline absl::Status Checked(const char* call, cudaError_t result) {
  if (result == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat("gpu_bench: ", call, ": ", cudaGetErrorName(result), ": ",
                                        cudaGetErrorString(result));
  return result == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text)
                                             : absl::InternalError(text);
}

// The first failure of many calls.
class FirstFailure {
 public:
  bool Check(const char* call, cudaError_t result) { return Update(Checked(call, result)); }
  bool Update(const absl::Status& status) {
    status_.Update(status);
    return status_.ok();
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// On the GPU.
class GpuMemory {
 public:
  ~GpuMemory() {
    if (data_ != nullptr) cudaFree(data_);
  }
  absl::Status Allocate(size_t bytes) { return Checked("cudaMalloc", cudaMalloc(&data_, bytes)); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

class PageLockedMemory {
 public:
  ~PageLockedMemory() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  absl::Status Allocate(size_t bytes) {
    RETURN_IF_ERROR(Checked("cudaHostAlloc", cudaHostAlloc(&data_, bytes, cudaHostAllocDefault)));
    std::fill_n(static_cast<char*>(data_), bytes, 1);
    return absl::OkStatus();
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class GpuStream {
 public:
  ~GpuStream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  absl::Status Create() {
    return Checked("cudaStreamCreateWithFlags",
                   cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class GpuEvent {
 public:
  ~GpuEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  absl::Status Create() {
    return Checked("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDefault));
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Measures work of a stream; errors are those that `failure` has seen.
class StreamTimer : public GpuTimer {
 public:
  StreamTimer(cudaStream_t stream, FirstFailure* failure) : stream_(stream), failure_(failure) {}
  absl::Status Create() {
    RETURN_IF_ERROR(begin_.Create());
    return end_.Create();
  }

  void Begin() override { Record(begin_); }
  void End() override { Record(end_); }
  absl::StatusOr<double> Milliseconds() override {
    float milliseconds = 0;
    failure_->Check("cudaEventSynchronize", cudaEventSynchronize(end_.get())) &&
        failure_->Check("cudaEventElapsedTime",
                        cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    if (!failure_->status().ok()) return failure_->status();
    return milliseconds;
  }

 private:
  void Record(const GpuEvent& event) {
    failure_->Check("cudaEventRecord", cudaEventRecord(event.get(), stream_));
  }

  const cudaStream_t stream_;
  FirstFailure* const failure_;
  GpuEvent begin_;
  GpuEvent end_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_CUDA_HANDLES_H_
