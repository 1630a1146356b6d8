#include "core/device/cuda/cuda_event.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(CudaContext* context) {
  std::unique_ptr<CudaEvent> event(new CudaEvent(context));
  if (!context->Check("cudaEventCreateWithFlags",
                      cudaEventCreateWithFlags(&event->event_, cudaEventDefault)) ||
      !context->Check("cudaEventCreateWithFlags",
                      cudaEventCreateWithFlags(&event->inner_, cudaEventDisableTiming))) {
    return context->status();
  }
  return event;
}

CudaEvent::~CudaEvent() {
  context_->BeginRelease();
  for (cudaEvent_t event : {event_, inner_}) {
    if (event != nullptr) context_->Check("cudaEventDestroy", cudaEventDestroy(event));
  }
}

bool CudaEvent::Record(cudaStream_t stream) {
  recorded_ = true;
  recorded_by_upload_ = recorded_by_upload_ || stream == context_->upload();
  capture_ = context_->capture();
  if (capture_ == 0) return context_->Check("cudaEventRecord", cudaEventRecord(event_, stream));
  return context_->Check("cudaEventRecordWithFlags",
                         cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal)) &&
         context_->Check("cudaEventRecord", cudaEventRecord(inner_, stream));
}

bool CudaEvent::Delay(cudaStream_t stream) const {
  const auto wait = [&](cudaEvent_t event, unsigned flags) {
    return context_->Check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, flags));
  };
  if (context_->capture() == 0) return wait(event_, cudaEventWaitDefault);
  if (capture_ == context_->capture()) return wait(inner_, cudaEventWaitDefault);
  // A graph is launched after all work of the compute and download streams, so their events have
  // passed. A node that waits for an event which the same graph records might wait for itself.
  if (recorded_ && !recorded_by_upload_) return true;
  return wait(event_, cudaEventWaitExternal);
}

}  // namespace keelson
