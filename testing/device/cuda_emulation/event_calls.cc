#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::CurrentGpu;
using emulation::EventState;
using emulation::Machine;
using emulation::ReleasingCall;
using emulation::RuntimeCall;

namespace {

cudaError_t RecordWithinCapture(Machine* machine, CUstream_st* stream,
                                const std::shared_ptr<EventState>& event, unsigned flags) {
  if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (flags == cudaEventRecordExternal) {
    machine->AddNode(stream)->records = event;
    return cudaSuccess;
  }
  event->capture = stream->capture;
  event->captured_after = stream->capture_after;
  event->work = nullptr;
  stream->capture->events.insert(event);
  return cudaSuccess;
}

// For what asks whether an event has passed.
cudaError_t Askable(Machine* machine, cudaEvent_t event) {
  if (!machine->events.Has(event)) return cudaErrorInvalidResourceHandle;
  if (event->state->capture != nullptr) {
    event->state->capture->invalid = true;
    return cudaErrorCapturedEvent;
  }
  return machine->ForbiddenByCapture() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return RuntimeCall("cudaEventCreateWithFlags", [&](Machine* machine) {
    auto created = std::make_unique<CUevent_st>();
    created->gpu = CurrentGpu();
    created->timing = (flags & cudaEventDisableTiming) == 0;
    created->state = std::make_shared<EventState>();
    *event = machine->events.Add(std::move(created));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ReleasingCall("cudaEventDestroy", [&](Machine* machine) {
    if (!machine->events.Has(event)) return cudaErrorInvalidResourceHandle;
    event->state->destroyed = true;
    machine->events.Remove(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  return RuntimeCall("cudaEventRecord", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr || !machine->events.Has(event) || event->gpu != stream->gpu) {
      return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != nullptr) {
      return RecordWithinCapture(machine, stream, event->state, flags);
    }
    if (flags != cudaEventRecordDefault) return cudaErrorInvalidValue;
    const cudaError_t error = machine->Enqueue(stream, 0, nullptr);
    if (error != cudaSuccess) return error;
    event->state->capture = nullptr;
    event->state->work = stream->last;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return RuntimeCall("cudaEventQuery", [&](Machine* machine) {
    const cudaError_t error = Askable(machine, event);
    if (error != cudaSuccess) return error;
    const emulation::WorkPointer work = event->state->work;
    machine->Nudge(work);
    if (machine->gpu(event->gpu).error != cudaSuccess) return machine->gpu(event->gpu).error;
    return work == nullptr || work->done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return RuntimeCall("cudaEventSynchronize", [&](Machine* machine) {
    const cudaError_t error = Askable(machine, event);
    if (error != cudaSuccess) return error;
    ++machine->statistics().event_synchronizations;
    machine->RunUntil(event->state->work);
    return machine->gpu(event->gpu).error;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return RuntimeCall("cudaEventElapsedTime", [&](Machine* machine) {
    if (!machine->events.Has(from) || !machine->events.Has(to)) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!from->timing || !to->timing) return cudaErrorInvalidResourceHandle;
    const emulation::WorkPointer begin = from->state->work, end = to->state->work;
    if (begin == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
    if (!begin->done || !end->done) return cudaErrorNotReady;
    *milliseconds =
        static_cast<float>((end->done_microseconds - begin->done_microseconds) / 1000.0);
    return cudaSuccess;
  });
}
