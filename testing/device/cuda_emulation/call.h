// The begin and end of every call of the emulated libraries.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_CALL_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_CALL_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/functional/function_ref.h"
#include "testing/device/cuda_emulation/machine.h"

namespace keelson::cuda_emulation {

// The GPU that cudaSetDevice made the calling thread's.
int CurrentGpu();
void SetCurrentGpu(int gpu);
// The error that cudaGetLastError will return to the calling thread.
cudaError_t LastError();
void SetLastError(cudaError_t error);

// Calls `body` with the machine, which the calling thread holds meanwhile.
void WithMachine(absl::FunctionRef<void(Machine*)> body);
// Starts over; returns the leaks.
std::string ReplaceMachine(const Options& options);

// A call of the runtime: the driver's absence, faults, the GPU's earlier error, `body`; the result
// becomes the last error.
cudaError_t RuntimeCall(const char* name, absl::FunctionRef<cudaError_t(Machine*)> body);
// A call that frees something: `body` is called even after an earlier error of the GPU.
cudaError_t ReleasingCall(const char* name, absl::FunctionRef<cudaError_t(Machine*)> body);
cublasStatus_t BlasCall(const char* name, absl::FunctionRef<cublasStatus_t(Machine*)> body);
ncclResult_t NcclCall(const char* name, absl::FunctionRef<ncclResult_t(Machine*)> body);

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_CALL_H_
