#include "core/device/cuda/cuda_memory.h"

#include <algorithm>
#include <utility>

namespace keelson {
namespace {

class CudaMemory : public DeviceMemory {
 public:
  CudaMemory(float* data, int64_t size, CudaContext* context)
      : DeviceMemory(data, size), context_(context) {}

  // Also gives memory back when an operation has failed.
  ~CudaMemory() override {
    context_->Check("cudaSetDevice", cudaSetDevice(context_->ordinal()));
    context_->Check("cudaStreamSynchronize", cudaStreamSynchronize(context_->stream()));
    context_->Check("cudaFree", cudaFree(data()));
  }

 private:
  CudaContext* const context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> AllocateCudaMemory(int64_t floats,
                                                                 CudaContext* context) {
  constexpr int64_t kBeyondAnyDevice = int64_t{1} << 60;
  void* data = nullptr;
  const size_t bytes = static_cast<size_t>(std::min(floats, kBeyondAnyDevice)) * sizeof(float);
  const cudaError_t result = bytes == 0 ? cudaSuccess : cudaMalloc(&data, bytes);
  if (result != cudaSuccess) return context->AllocationError(bytes, result);
  return std::make_unique<CudaMemory>(static_cast<float*>(data), floats, context);
}

float* CudaScratch::Get(int64_t floats) {
  if (memory_ != nullptr && memory_->size() >= floats) return memory_->data();
  memory_.reset();
  auto memory = AllocateCudaMemory(floats, context_);
  if (!memory.ok()) {
    context_->Fail(std::move(memory).status());
    return nullptr;
  }
  memory_ = *std::move(memory);
  return memory_->data();
}

}  // namespace keelson
