// Page-locked memory of the host, which a GPU accesses without the CPU.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_HOST_MEMORY_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/device.h"

namespace keelson {

// Page-locking is slow, so memory that is given back serves later requests of about its size: sizes
// are rounded up by a quarter at most. It is unlocked when the pool goes.
class CudaHostPool {
 public:
  // `context` must outlive the pool.
  explicit CudaHostPool(CudaContext* context) : context_(context) {}
  ~CudaHostPool();
  CudaHostPool(const CudaHostPool&) = delete;
  CudaHostPool& operator=(const CudaHostPool&) = delete;

  // Allocates memory with undefined content, within an operation begun on the context. The pool
  // must outlive it. RESOURCE_EXHAUSTED: out of memory.
  absl::StatusOr<std::unique_ptr<HostMemory>> Allocate(size_t bytes);

 private:
  friend class CudaHostMemory;

  CudaContext* const context_;
  // By size.
  std::map<size_t, std::vector<uint8_t*>> unused_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_HOST_MEMORY_H_
