#include "testing/device/cuda_emulation/call.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/mutex.h"
#include "testing/device/cuda_emulation/crash_report.h"

namespace keelson::cuda_emulation {
namespace {

// CUDA's libraries have one state per process, and so does what stands in for them.
struct Process {
  Mutex mutex;
  std::unique_ptr<Machine> machine ABSL_GUARDED_BY(mutex);
};

Process& TheProcess() {
  static Process* const process = new Process;
  return *process;
}

thread_local int current_gpu = 0;
thread_local cudaError_t last_error = cudaSuccess;

template <typename T>
void FromEnvironment(const char* name, T* value) {
  const char* const text = std::getenv(name);
  T number;
  if (text != nullptr && absl::SimpleAtoi(text, &number)) *value = number;
}

Options EnvironmentOptions() {
  Options options;
  FromEnvironment("KEELSON_EMULATED_GPUS", &options.gpus);
  FromEnvironment("KEELSON_EMULATED_ORDER_SEED", &options.order_seed);
  return options;
}

// The error that the calling thread's GPU has from earlier work.
cudaError_t EarlierError(Machine* machine) {
  return current_gpu < machine->gpus() ? machine->gpu(current_gpu).error : cudaSuccess;
}

cudaError_t Begin(const char* name, Machine* machine) {
  ++machine->statistics().calls;
  if (const int fault = machine->FaultOf(name); fault != 0) return static_cast<cudaError_t>(fault);
  if (!machine->options().driver) return cudaErrorInsufficientDriver;
  return machine->gpus() == 0 ? cudaErrorNoDevice : cudaSuccess;
}

}  // namespace

int CurrentGpu() { return current_gpu; }
void SetCurrentGpu(int gpu) { current_gpu = gpu; }
cudaError_t LastError() { return last_error; }
void SetLastError(cudaError_t error) { last_error = error; }

void WithMachine(absl::FunctionRef<void(Machine*)> body) {
  Process& process = TheProcess();
  const MutexLock lock(&process.mutex);
  if (process.machine == nullptr) {
    ReportCrashes();
    process.machine = std::make_unique<Machine>(EnvironmentOptions());
  }
  body(process.machine.get());
}

std::string ReplaceMachine(const Options& options) {
  std::string leaks;
  WithMachine([&](Machine* machine) { leaks = machine->Leaks(); });
  Process& process = TheProcess();
  const MutexLock lock(&process.mutex);
  process.machine = std::make_unique<Machine>(options);
  current_gpu = 0;
  last_error = cudaSuccess;
  return leaks;
}

cudaError_t RuntimeCall(const char* name, absl::FunctionRef<cudaError_t(Machine*)> body) {
  cudaError_t error = cudaSuccess;
  WithMachine([&](Machine* machine) {
    error = Begin(name, machine);
    if (error == cudaSuccess) error = EarlierError(machine);
    if (error == cudaSuccess) error = body(machine);
  });
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t ReleasingCall(const char* name, absl::FunctionRef<cudaError_t(Machine*)> body) {
  cudaError_t error = cudaSuccess;
  WithMachine([&](Machine* machine) {
    error = Begin(name, machine);
    if (error == cudaSuccess) error = body(machine);
    if (error == cudaSuccess) error = EarlierError(machine);
  });
  if (error != cudaSuccess) last_error = error;
  return error;
}

cublasStatus_t BlasCall(const char* name, absl::FunctionRef<cublasStatus_t(Machine*)> body) {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  WithMachine([&](Machine* machine) {
    ++machine->statistics().calls;
    const int fault = machine->FaultOf(name);
    if (fault != 0) {
      status = static_cast<cublasStatus_t>(fault);
    } else if (machine->gpus() == 0) {
      status = CUBLAS_STATUS_NOT_INITIALIZED;
    } else {
      status = body(machine);
    }
  });
  return status;
}

ncclResult_t NcclCall(const char* name, absl::FunctionRef<ncclResult_t(Machine*)> body) {
  ncclResult_t result = ncclSuccess;
  WithMachine([&](Machine* machine) {
    ++machine->statistics().calls;
    const int fault = machine->FaultOf(name);
    result = fault != 0 ? static_cast<ncclResult_t>(fault) : body(machine);
  });
  return result;
}

}  // namespace keelson::cuda_emulation
