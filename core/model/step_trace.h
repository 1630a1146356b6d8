// The times of a training step's parts on a device, for benchmarks.
#ifndef KEELSON_CORE_MODEL_STEP_TRACE_H_
#define KEELSON_CORE_MODEL_STEP_TRACE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/device/device.h"

namespace keelson {

// Milliseconds on the clock of the model's first device; 0 is when the copy of the batch to the
// device could begin.
struct StepTimes {
  struct Interval {
    double begin = 0;
    double end = 0;
  };
  Interval batch;     // features and labels, to the device
  Interval forward;   // to the sum of the losses, with the waits for uploads
  Interval backward;  // to the last gradient, and clipping
  // By variable: the last copy of values that LoadWire began before this step, and the copy of its
  // gradient. Both ends are 0 where nothing was copied. The begin of an upload is taken from the
  // host's clock: it is exact to some 10 microseconds.
  std::vector<Interval> uploads;
  std::vector<Interval> downloads;
};

// Used by a model, which calls it at each point of its steps, and Read after a step. Not
// thread-safe.
class StepTrace {
 public:
  // The device and the clock must outlive it. RESOURCE_EXHAUSTED: no memory for the events.
  static absl::StatusOr<std::unique_ptr<StepTrace>> Create(Device* device, size_t variables,
                                                           const Clock* clock);

  // Called on the host in this order, once a step; UploadBegins between two steps.
  void StepBegins();
  void LossArrives() { loss_arrived_ = clock_->Monotonic(); }
  void UploadBegins(size_t variable) { next_uploads_.push_back({variable, clock_->Monotonic()}); }

  // Called in the order of the device's operations.
  void BatchBegins() { device_->Record(batch_begin_.get()); }
  void ForwardBegins() { device_->Record(forward_begin_.get()); }
  void BackwardBegins() { device_->Record(backward_begin_.get()); }
  void BackwardEnds() { device_->Record(backward_end_.get()); }
  // The variable's download may begin.
  void DownloadReady(size_t variable) { device_->Record(download_ready_[variable].get()); }

  // Returns the times of the last step, which had gradients. `uploaded` and `downloaded` pass when
  // a variable's copy is done; none: nothing is copied. `order` is that of the downloads.
  absl::StatusOr<StepTimes> Read(absl::Span<const DeviceEvent* const> uploaded,
                                 absl::Span<const DeviceEvent* const> downloaded,
                                 absl::Span<const size_t> order) const;

 private:
  struct Upload {
    size_t variable;
    absl::Duration called;
  };

  StepTrace(Device* device, const Clock* clock) : device_(device), clock_(clock) {}

  absl::Status CreateEvents(size_t variables);
  double Milliseconds(const DeviceEvent& event) const {
    return device_->MillisecondsBetween(*batch_begin_, event);
  }

  Device* const device_;
  const Clock* const clock_;
  std::unique_ptr<DeviceEvent> batch_begin_;
  std::unique_ptr<DeviceEvent> forward_begin_;
  std::unique_ptr<DeviceEvent> backward_begin_;
  std::unique_ptr<DeviceEvent> backward_end_;
  std::vector<std::unique_ptr<DeviceEvent>> download_ready_;
  absl::Duration loss_arrived_;
  // Uploads for the last step and for the next one, in the order of the calls.
  std::vector<Upload> uploads_;
  std::vector<Upload> next_uploads_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_STEP_TRACE_H_
