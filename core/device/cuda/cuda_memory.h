// Memory of a CUDA device.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/device.h"

namespace keelson {

// `floats` of undefined content, within an operation begun on `context`, which must outlive them.
// RESOURCE_EXHAUSTED: out of memory; says how much was asked for and how much is free.
absl::StatusOr<std::unique_ptr<DeviceMemory>> AllocateCudaMemory(int64_t floats,
                                                                 CudaContext* context);

// Memory that operations use one after the other for what lies between two of their steps. It
// grows, and lives as long as this object.
class CudaScratch {
 public:
  // `context` must outlive this object.
  explicit CudaScratch(CudaContext* context) : context_(context) {}

  // At least `floats`, of undefined content, valid until the next call; null when out of memory,
  // which becomes the context's status.
  float* Get(int64_t floats);

 private:
  CudaContext* const context_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_MEMORY_H_
