#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::CurrentGpu;
using emulation::Machine;
using emulation::ReleasingCall;
using emulation::RuntimeCall;

namespace {

constexpr size_t kHostAlignment = 4096;

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  int to_gpu;    // -1: the host
  int from_gpu;  // -1: the host
};

// The end of a copy that lies on `gpu`, -1: on the host.
bool Usable(Machine* machine, const char* what, int gpu, const void* pointer, size_t bytes) {
  const bool good =
      gpu < 0 ? machine->PageLocked(pointer, bytes) : machine->gpu(gpu).arena.Holds(pointer, bytes);
  if (!good) {
    machine->Complain(absl::StrFormat(
        "%s %p of a copy of %d bytes is not %s", what, pointer, bytes,
        gpu < 0 ? std::string("page-locked") : absl::StrCat("within an allocation of GPU ", gpu)));
  }
  return good;
}

bool Usable(Machine* machine, const Copy& copy) {
  return Usable(machine, "the target", copy.to_gpu, copy.to, copy.bytes) &&
         Usable(machine, "the source", copy.from_gpu, copy.from, copy.bytes);
}

unsigned Memories(const Copy& copy) {
  return (copy.to_gpu < 0 ? 0 : 1u << copy.to_gpu) | (copy.from_gpu < 0 ? 0 : 1u << copy.from_gpu);
}

// Whether the ends are where `kind` says.
bool Matches(cudaMemcpyKind kind, const Copy& copy) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return copy.to_gpu < 0 && copy.from_gpu < 0;
    case cudaMemcpyHostToDevice:
      return copy.to_gpu >= 0 && copy.from_gpu < 0;
    case cudaMemcpyDeviceToHost:
      return copy.to_gpu < 0 && copy.from_gpu >= 0;
    case cudaMemcpyDeviceToDevice:
      return copy.to_gpu >= 0 && copy.from_gpu >= 0;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

void Count(const Copy& copy, emulation::Statistics* statistics) {
  const auto bytes = static_cast<int64_t>(copy.bytes);
  if (copy.to_gpu >= 0 && copy.from_gpu >= 0) {
    ++statistics->copies_on_device;
  } else if (copy.to_gpu >= 0) {
    ++statistics->copies_to_device;
    statistics->bytes_to_device += bytes;
  } else if (copy.from_gpu >= 0) {
    ++statistics->copies_to_host;
    statistics->bytes_to_host += bytes;
  }
}

cudaError_t EnqueueCopy(Machine* machine, const Copy& copy, cudaStream_t handle) {
  CUstream_st* const stream = machine->Find(handle, CurrentGpu());
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (copy.bytes == 0) return cudaSuccess;
  if (!Usable(machine, copy)) return cudaErrorInvalidValue;
  if (stream->capture == nullptr) Count(copy, &machine->statistics());
  return machine->Enqueue(stream, Memories(copy), [machine, copy]() -> int {
    if (!Usable(machine, copy)) return cudaErrorIllegalAddress;
    std::memcpy(copy.to, copy.from, copy.bytes);
    return cudaSuccess;
  });
}

cudaError_t EnqueueSet(Machine* machine, void* to, int value, size_t bytes, cudaStream_t handle) {
  CUstream_st* const stream = machine->Find(handle, CurrentGpu());
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  const int gpu = machine->OwnerOf(to);
  if (!Usable(machine, "the memory", gpu, to, bytes)) return cudaErrorInvalidValue;
  return machine->Enqueue(stream, gpu < 0 ? 0 : 1u << gpu, [=]() -> int {
    if (!Usable(machine, "the memory", gpu, to, bytes)) return cudaErrorIllegalAddress;
    std::memset(to, value, bytes);
    return cudaSuccess;
  });
}

// Waits for the null stream.
cudaError_t Finish(Machine* machine) {
  ++machine->statistics().synchronous_copies;
  emulation::Gpu& gpu = machine->gpu(CurrentGpu());
  machine->RunUntil(gpu.default_stream.last);
  return gpu.error;
}

}  // namespace

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return RuntimeCall("cudaMemGetInfo", [&](Machine* machine) {
    *total = machine->options().memory_bytes;
    *free = *total - machine->gpu(CurrentGpu()).arena.bytes_in_use();
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  *pointer = nullptr;
  return RuntimeCall("cudaMalloc", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    ++machine->statistics().allocations;
    if (bytes == 0) return cudaSuccess;
    emulation::Arena& arena = machine->gpu(CurrentGpu()).arena;
    if (bytes > machine->options().memory_bytes - arena.bytes_in_use()) {
      return cudaErrorMemoryAllocation;
    }
    *pointer = arena.Allocate(bytes);
    return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

// Waits for all work, as CUDA's does.
cudaError_t cudaFree(void* pointer) {
  return ReleasingCall("cudaFree", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    if (pointer == nullptr) return cudaSuccess;
    ++machine->statistics().frees;
    machine->RunAll();
    const int owner = machine->OwnerOf(pointer);
    if (owner < 0) return cudaErrorInvalidValue;
    switch (machine->gpu(owner).arena.Free(pointer)) {
      case emulation::Arena::Freed::kGood:
        return cudaSuccess;
      case emulation::Arena::Freed::kUnknown:
        machine->Complain(absl::StrFormat("cudaFree of %p, which is not allocated", pointer));
        return cudaErrorInvalidValue;
      case emulation::Arena::Freed::kOverrun:
        machine->Complain(absl::StrFormat("memory behind the allocation %p was written", pointer));
        return cudaErrorIllegalAddress;
    }
    return cudaErrorUnknown;
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  *pointer = nullptr;
  return RuntimeCall("cudaHostAlloc", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    ++machine->statistics().allocations;
    if (bytes == 0) return cudaErrorInvalidValue;
    const size_t size = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    void* const allocated = std::aligned_alloc(kHostAlignment, size);
    if (allocated == nullptr) return cudaErrorMemoryAllocation;
    std::memset(allocated, 0xff, size);
    machine->page_locked()[static_cast<char*>(allocated)] = bytes;
    machine->host_allocations().insert(allocated);
    *pointer = allocated;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return ReleasingCall("cudaFreeHost", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    if (pointer == nullptr) return cudaSuccess;
    ++machine->statistics().frees;
    machine->RunAll();
    if (machine->host_allocations().erase(pointer) == 0) return cudaErrorInvalidValue;
    machine->page_locked().erase(static_cast<char*>(pointer));
    std::free(pointer);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return RuntimeCall("cudaHostRegister", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    ++machine->statistics().allocations;
    if (pointer == nullptr || bytes == 0) return cudaErrorInvalidValue;
    if (machine->PageLocked(pointer, 1)) return cudaErrorHostMemoryAlreadyRegistered;
    machine->page_locked()[static_cast<char*>(pointer)] = bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return ReleasingCall("cudaHostUnregister", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureUnsupported;
    ++machine->statistics().frees;
    machine->RunAll();
    const bool known = !machine->host_allocations().contains(pointer) &&
                       machine->page_locked().erase(static_cast<char*>(pointer)) > 0;
    return known ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return RuntimeCall("cudaMemcpyAsync", [&](Machine* machine) {
    const Copy copy = {to, from, bytes, machine->OwnerOf(to), machine->OwnerOf(from)};
    if (bytes > 0 && !Matches(kind, copy)) return cudaErrorInvalidValue;
    return EnqueueCopy(machine, copy, stream);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return RuntimeCall("cudaMemcpyPeerAsync", [&](Machine* machine) {
    const int last = machine->gpus() - 1;
    if (to_device < 0 || to_device > last || from_device < 0 || from_device > last) {
      return cudaErrorInvalidDevice;
    }
    return EnqueueCopy(machine, {to, from, bytes, to_device, from_device}, stream);
  });
}

// The host's end need not be page-locked.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return RuntimeCall("cudaMemcpy", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureImplicit;
    const Copy copy = {to, from, bytes, machine->OwnerOf(to), machine->OwnerOf(from)};
    if (bytes == 0) return cudaSuccess;
    if (!Matches(kind, copy)) return cudaErrorInvalidValue;
    if (copy.to_gpu >= 0 && !Usable(machine, "the target", copy.to_gpu, to, bytes)) {
      return cudaErrorInvalidValue;
    }
    if (copy.from_gpu >= 0 && !Usable(machine, "the source", copy.from_gpu, from, bytes)) {
      return cudaErrorInvalidValue;
    }
    Count(copy, &machine->statistics());
    const cudaError_t error = machine->Enqueue(&machine->gpu(CurrentGpu()).default_stream,
                                               Memories(copy), [copy]() -> int {
                                                 std::memcpy(copy.to, copy.from, copy.bytes);
                                                 return cudaSuccess;
                                               });
    return error == cudaSuccess ? Finish(machine) : error;
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return RuntimeCall("cudaMemsetAsync", [&](Machine* machine) {
    return EnqueueSet(machine, to, value, bytes, stream);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return RuntimeCall("cudaMemset", [&](Machine* machine) {
    if (machine->ForbiddenByCapture()) return cudaErrorStreamCaptureImplicit;
    const cudaError_t error = EnqueueSet(machine, to, value, bytes, nullptr);
    return error == cudaSuccess ? Finish(machine) : error;
  });
}
