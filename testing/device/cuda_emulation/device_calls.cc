#include <cuda_runtime_api.h>

#include <cstdio>

#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::Machine;
using emulation::RuntimeCall;

namespace {

constexpr int kVersion = CUDART_VERSION;
constexpr int kMultiprocessors = 16;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& TextOf(cudaError_t error) {
  static constexpr ErrorText kOther = {cudaErrorUnknown, "cudaErrorOther",
                                       "an error that the emulation has no text for"};
  for (const ErrorText& text : kErrors) {
    if (text.error == error) return text;
  }
  return kOther;
}

bool Exists(Machine* machine, int gpu) { return 0 <= gpu && gpu < machine->gpus(); }

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = emulation::LastError();
  emulation::SetLastError(cudaSuccess);
  return error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  emulation::WithMachine(
      [&](Machine* machine) { *version = machine->options().driver ? kVersion : 0; });
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return RuntimeCall("cudaGetDeviceCount", [&](Machine* machine) {
    *count = machine->gpus();
    return cudaSuccess;
  });
}

// A call on another GPU does not meet this one's error.
cudaError_t cudaSetDevice(int device) {
  cudaError_t error = cudaSuccess;
  emulation::WithMachine([&](Machine* machine) {
    ++machine->statistics().calls;
    const int fault = machine->FaultOf("cudaSetDevice");
    if (fault != 0) {
      error = static_cast<cudaError_t>(fault);
    } else if (!Exists(machine, device)) {
      error = machine->gpus() == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice;
    } else {
      emulation::SetCurrentGpu(device);
      error = machine->gpu(device).error;
    }
  });
  if (error != cudaSuccess) emulation::SetLastError(error);
  return error;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return RuntimeCall("cudaGetDeviceProperties", [&](Machine* machine) {
    if (!Exists(machine, device)) return cudaErrorInvalidDevice;
    *properties = cudaDeviceProp{};
    std::snprintf(properties->name, sizeof(properties->name), "emulated GPU");
    properties->totalGlobalMem = machine->options().memory_bytes;
    properties->sharedMemPerBlock = 48 << 10;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = machine->options().compute_capability_major;
    properties->minor = machine->options().compute_capability_minor;
    properties->multiProcessorCount = kMultiprocessors;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = 1;
    properties->canMapHostMemory = 1;
    properties->unifiedAddressing = 1;
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return RuntimeCall("cudaDeviceSynchronize", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    ++machine->statistics().stream_synchronizations;
    machine->RunAll();
    return machine->gpu(emulation::CurrentGpu()).error;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return RuntimeCall("cudaDeviceCanAccessPeer", [&](Machine* machine) {
    if (!Exists(machine, device) || !Exists(machine, peer)) return cudaErrorInvalidDevice;
    *can_access = machine->options().peer_access && device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return RuntimeCall("cudaDeviceEnablePeerAccess", [&](Machine* machine) {
    const int gpu = emulation::CurrentGpu();
    if (flags != 0) return cudaErrorInvalidValue;
    if (!Exists(machine, peer) || peer == gpu) return cudaErrorInvalidDevice;
    if (!machine->options().peer_access) return cudaErrorPeerAccessUnsupported;
    if (!machine->gpu(gpu).peers.insert(peer).second) return cudaErrorPeerAccessAlreadyEnabled;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return RuntimeCall("cudaDeviceDisablePeerAccess", [&](Machine* machine) {
    if (!Exists(machine, peer)) return cudaErrorInvalidDevice;
    const bool enabled = machine->gpu(emulation::CurrentGpu()).peers.erase(peer) > 0;
    return enabled ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
  });
}
