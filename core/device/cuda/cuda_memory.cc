#include "core/device/cuda/cuda_memory.h"

#include "core/base/status_macros.h"

namespace keelson {

void CudaFree::operator()(uint8_t* data) const {
  context->BeginRelease();
  context->SynchronizeStreams();
  context->Check("cudaFree", cudaFree(data));
}

absl::StatusOr<CudaBuffer> AllocateCudaBuffer(size_t bytes, CudaContext* context) {
  void* data = nullptr;
  const cudaError_t result = bytes == 0 ? cudaSuccess : cudaMalloc(&data, bytes);
  if (result != cudaSuccess) return context->AllocationError(bytes, result);
  return CudaBuffer(static_cast<uint8_t*>(data), CudaFree{context});
}

absl::StatusOr<CudaBuffer> AllocateCudaZeros(size_t bytes, CudaContext* context) {
  ASSIGN_OR_RETURN(CudaBuffer buffer, AllocateCudaBuffer(bytes, context));
  if (bytes == 0) return buffer;
  // All streams may use the memory at once, so the zeros must be written before this returns.
  if (!context->Check("cudaMemsetAsync",
                      cudaMemsetAsync(buffer.get(), 0, bytes, context->compute())) ||
      !context->Check("cudaStreamSynchronize", cudaStreamSynchronize(context->compute()))) {
    return context->status();
  }
  return buffer;
}

absl::Status CudaScratch::Reserve(size_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  buffer_.reset();
  bytes_ = 0;
  ASSIGN_OR_RETURN(buffer_, AllocateCudaBuffer(bytes, context_));
  bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace keelson
