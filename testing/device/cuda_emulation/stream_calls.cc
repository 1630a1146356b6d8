#include <cuda_runtime_api.h>

#include <memory>

#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::CurrentGpu;
using emulation::Machine;
using emulation::ReleasingCall;
using emulation::RuntimeCall;

namespace {

cudaError_t WaitWithinCapture(Machine* machine, CUstream_st* stream, const CUevent_st& event,
                              unsigned flags) {
  if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (flags == cudaEventWaitExternal) {
    machine->AddNode(stream)->waits_for = event.state;
    return cudaSuccess;
  }
  if (event.state->capture != nullptr) return machine->JoinCapture(stream, *event.state);
  stream->capture->invalid = true;
  return cudaErrorStreamCaptureIsolation;
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return RuntimeCall("cudaStreamCreateWithFlags", [&](Machine* machine) {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    auto created = std::make_unique<CUstream_st>();
    created->gpu = CurrentGpu();
    created->lane = machine->NewLanes(1);
    created->non_blocking = flags == cudaStreamNonBlocking;
    *stream = machine->streams.Add(std::move(created));
    return cudaSuccess;
  });
}

// Its work goes on; the call does not wait.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return ReleasingCall("cudaStreamDestroy", [&](Machine* machine) {
    if (stream == nullptr || !machine->streams.Has(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) {
      stream->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    machine->streams.Remove(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return RuntimeCall("cudaStreamSynchronize", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr || machine->ForbiddenByCapture()) {
      if (stream->capture != nullptr) stream->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    ++machine->statistics().stream_synchronizations;
    machine->RunUntil(stream->last);
    return machine->gpu(stream->gpu).error;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return RuntimeCall("cudaStreamQuery", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr || machine->ForbiddenByCapture()) {
      if (stream->capture != nullptr) stream->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    machine->Nudge(stream->last);
    const cudaError_t error = machine->gpu(stream->gpu).error;
    if (error != cudaSuccess) return error;
    return stream->last == nullptr || stream->last->done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  return RuntimeCall("cudaStreamWaitEvent", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr || !machine->events.Has(event)) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) return WaitWithinCapture(machine, stream, *event, flags);
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (event->state->capture != nullptr) return machine->JoinCapture(stream, *event->state);
    if (event->state->work == nullptr) return cudaSuccess;
    return machine->Enqueue(stream, 0, nullptr, {event->state->work});
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return RuntimeCall("cudaStreamBeginCapture", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return machine->BeginCapture(stream, mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  return RuntimeCall("cudaStreamEndCapture", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = machine->EndCapture(stream, graph);
    if (error == cudaSuccess) ++machine->statistics().graph_captures;
    return error;
  });
}
