// Events of a CUDA device.
#ifndef KEELSON_CORE_DEVICE_CUDA_CUDA_EVENT_H_
#define KEELSON_CORE_DEVICE_CUDA_CUDA_EVENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/device.h"

namespace keelson {

// All calls within an operation begun on the context, which takes a failure.
class CudaEvent : public DeviceEvent {
 public:
  // `context` must outlive the event.
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create(CudaContext* context);
  ~CudaEvent() override;

  // The event passes when the work on `stream` so far is done. Within a capture it is recorded at
  // every launch of the graph.
  bool Record(cudaStream_t stream);
  // Work put on `stream` (within a capture, on the compute stream) after this call waits for the
  // event.
  bool Delay(cudaStream_t stream) const;

  cudaEvent_t handle() const { return event_; }
  bool recorded() const { return recorded_; }

 private:
  explicit CudaEvent(CudaContext* context) : context_(context) {}

  CudaContext* const context_;
  cudaEvent_t event_ = nullptr;
  // Used in place of event_ between the streams of the capture that records it, since a graph
  // cannot wait for itself as for an external event.
  cudaEvent_t inner_ = nullptr;
  int64_t capture_ = 0;  // which recorded it last
  bool recorded_ = false;
  bool recorded_by_upload_ = false;  // ever
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CUDA_CUDA_EVENT_H_
