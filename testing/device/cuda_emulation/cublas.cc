#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "testing/device/cuda_emulation/call.h"
#include "testing/device/cuda_emulation/enqueue_product.h"

namespace keelson::cuda_emulation {
namespace {

// Whether the product's memory may be used; complains otherwise.
bool Usable(Machine* machine, const Product& p, int gpu) {
  const size_t m = p.m(), n = p.n();
  const struct {
    const char* name;
    const void* data;
    size_t bytes;
  } operands[] = {
      {"A", p.a.data, p.a.bytes()},
      {"B", p.b.data, p.b.bytes()},
      {"C", p.beta == 0 ? nullptr : p.c.data, p.c.bytes()},
      {"D", p.d.data, p.d.bytes()},
      {"bias", p.bias, m * sizeof(float)},
      {"gradient of the bias", p.row_sums, m * sizeof(float)},
      {"gradient of the bias", p.column_sums, n * sizeof(float)},
  };
  for (const auto& operand : operands) {
    if (operand.data == nullptr) continue;
    const std::string misuse = machine->Misuse(gpu, operand.data, operand.bytes);
    if (misuse.empty()) continue;
    machine->Complain(absl::StrCat("a product's ", operand.name, ": ", misuse));
    return false;
  }
  return true;
}

}  // namespace

cublasStatus_t EnqueueProduct(Machine* machine, const Product& product, int gpu,
                              cudaStream_t handle, void* workspace, size_t workspace_bytes) {
  CUstream_st* const stream = machine->Find(handle, gpu);
  if (gpu != CurrentGpu() || stream == nullptr || stream->gpu != gpu) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (machine->gpu(gpu).error != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!Usable(machine, product, gpu)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (workspace_bytes > 0 && !machine->Misuse(gpu, workspace, workspace_bytes).empty()) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (stream->capture == nullptr) ++machine->statistics().products;
  const cudaError_t error = machine->Enqueue(stream, machine->KernelMemories(gpu), [=]() -> int {
    if (!Usable(machine, product, gpu)) return cudaErrorIllegalAddress;
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    Multiply(product);
    return cudaSuccess;
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace keelson::cuda_emulation
