#include "core/device/cuda/cuda_host_memory.h"

#include <bit>

namespace keelson {
namespace {

// Sizes are rounded to a power of two or one of three steps between it and the next, from one page
// on.
size_t RoundedUp(size_t bytes) {
  constexpr size_t kPage = 4096;
  if (bytes <= kPage) return kPage;
  const size_t quarter = std::bit_floor(bytes - 1) / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

}  // namespace

class CudaHostMemory : public HostMemory {
 public:
  CudaHostMemory(uint8_t* data, size_t bytes, size_t rounded, CudaHostPool* pool)
      : HostMemory({data, bytes}), data_(data), rounded_(rounded), pool_(pool) {}
  ~CudaHostMemory() override {
    pool_->context_->CountFree();
    if (data_ != nullptr) pool_->unused_[rounded_].push_back(data_);
  }

 private:
  uint8_t* const data_;
  const size_t rounded_;
  CudaHostPool* const pool_;
};

CudaHostPool::~CudaHostPool() {
  context_->BeginRelease();
  for (const auto& [size, blocks] : unused_) {
    for (uint8_t* block : blocks) context_->Check("cudaFreeHost", cudaFreeHost(block));
  }
}

absl::StatusOr<std::unique_ptr<HostMemory>> CudaHostPool::Allocate(size_t bytes) {
  if (bytes == 0) return std::make_unique<CudaHostMemory>(nullptr, 0, 0, this);
  const size_t rounded = RoundedUp(bytes);
  std::vector<uint8_t*>& unused = unused_[rounded];
  if (unused.empty()) {
    void* data = nullptr;
    // "Portable" memory is page-locked for every GPU of the process.
    const cudaError_t result = cudaHostAlloc(&data, rounded, cudaHostAllocPortable);
    if (result != cudaSuccess) return context_->HostAllocationError(rounded, result);
    unused.push_back(static_cast<uint8_t*>(data));
  }
  uint8_t* const data = unused.back();
  unused.pop_back();
  return std::make_unique<CudaHostMemory>(data, bytes, rounded, this);
}

}  // namespace keelson
