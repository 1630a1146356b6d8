// Repeats work as CUDA graphs.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_GRAPHS_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_GRAPHS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>

#include "absl/functional/function_ref.h"
#include "core/device/cuda/cuda_context.h"

namespace keelson {

// Implements Device::Repeat: operations run directly the first time (libraries load their kernels
// then, and scratch memory grows), are captured the second time, and from then on their graph is
// launched. With more than 8 keys, the later ones always run directly.
class CudaGraphs {
 public:
  // `context` must outlive this object.
  explicit CudaGraphs(CudaContext* context) : context_(context) {}
  ~CudaGraphs();
  CudaGraphs(const CudaGraphs&) = delete;
  CudaGraphs& operator=(const CudaGraphs&) = delete;

  // Within an operation begun on the context, which takes a failure.
  void Repeat(uint64_t key, absl::FunctionRef<void()> operations);

 private:
  void Clear();
  void Run(uint64_t key, absl::FunctionRef<void()> operations);
  // Null after a failure.
  cudaGraphExec_t Capture(absl::FunctionRef<void()> operations);

  CudaContext* const context_;
  // Null: the operations have run once and were not captured yet.
  std::map<uint64_t, cudaGraphExec_t> graphs_;
  int64_t frees_ = 0;  // of the context, when `graphs_` were captured
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_GRAPHS_H_
