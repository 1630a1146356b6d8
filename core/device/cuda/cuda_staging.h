// Copies between a GPU and memory of the host that is not page-locked.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_STAGING_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_event.h"
#include "core/device/cuda/cuda_host_memory.h"
#include "core/device/device.h"

namespace keelson {

// Copies by way of 8 page-locked pieces of 2 MiB, which are allocated with the first copy. Copies
// are work of the compute stream. All calls are made within an operation begun on the context,
// which takes a failure.
class CudaStaging {
 public:
  // `context` and `pool` must outlive this object.
  CudaStaging(CudaContext* context, CudaHostPool* pool) : context_(context), pool_(pool) {}
  // Waits for copies under way.
  ~CudaStaging();

  // `from` may be reused when the call returns, which waits for the GPU only while all pieces
  // are in use.
  void CopyToDevice(const void* from, size_t bytes, void* to);
  // Waits for the copy.
  void CopyToHost(const void* from, size_t bytes, void* to);

 private:
  struct Piece {
    uint8_t* bytes;
    std::unique_ptr<CudaEvent> copied;
  };
  bool Allocate();
  // A piece that no copy uses. Null after a failure.
  Piece* Next();
  // Copies through the piece.
  bool Copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind, Piece* piece);

  CudaContext* const context_;
  CudaHostPool* const pool_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_STAGING_H_
