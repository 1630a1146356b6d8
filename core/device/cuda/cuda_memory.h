// Memory of a CUDA device.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/device.h"

namespace keelson {

// Frees bytes on the device (aligned to 256), which waits for all of the device's work.
struct CudaFree {
  void operator()(uint8_t* data) const;
  CudaContext* context = nullptr;  // must outlive the buffer
};
using CudaBuffer = std::unique_ptr<uint8_t, CudaFree>;

// Allocates memory with undefined content, within an operation begun on `context`; null: no bytes.
// RESOURCE_EXHAUSTED: out of memory; says how much was asked for and how much is free.
absl::StatusOr<CudaBuffer> AllocateCudaBuffer(size_t bytes, CudaContext* context);
// The same with zeros, which are written when the call returns.
absl::StatusOr<CudaBuffer> AllocateCudaZeros(size_t bytes, CudaContext* context);

class CudaMemory : public DeviceMemory {
 public:
  CudaMemory(CudaBuffer buffer, int64_t floats)
      : DeviceMemory(reinterpret_cast<float*>(buffer.get()), floats), buffer_(std::move(buffer)) {}

 private:
  const CudaBuffer buffer_;
};

// The bytes of `floats` floats; more than any device has if the number overflows.
inline size_t CudaFloatBytes(int64_t floats) {
  constexpr int64_t kBeyondAnyDevice = int64_t{1} << 60;
  return std::min(floats, kBeyondAnyDevice) * sizeof(float);
}

// Temporary memory of one stream, used by one operation after the other. It grows, and lives as
// long as this object.
class CudaScratch {
 public:
  // `context` must outlive this object.
  explicit CudaScratch(CudaContext* context) : context_(context) {}

  // Room for `n` elements of undefined content, valid until the next call; null when out of memory,
  // which becomes the context's status.
  template <typename T>
  T* Get(int64_t n) {
    absl::Status status = Reserve(n * sizeof(T));
    if (status.ok()) return reinterpret_cast<T*>(buffer_.get());
    context_->Fail(std::move(status));
    return nullptr;
  }
  // RESOURCE_EXHAUSTED: out of memory.
  absl::Status Reserve(size_t bytes);

 private:
  CudaContext* const context_;
  CudaBuffer buffer_;
  size_t bytes_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_
