#include "core/model/step_trace.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<StepTrace>> StepTrace::Create(Device* device, size_t variables,
                                                             const Clock* clock) {
  std::unique_ptr<StepTrace> trace(new StepTrace(device, clock));
  RETURN_IF_ERROR(trace->CreateEvents(variables));
  return trace;
}

absl::Status StepTrace::CreateEvents(size_t variables) {
  ASSIGN_OR_RETURN(batch_begin_, device_->NewEvent());
  ASSIGN_OR_RETURN(forward_begin_, device_->NewEvent());
  ASSIGN_OR_RETURN(backward_begin_, device_->NewEvent());
  ASSIGN_OR_RETURN(backward_end_, device_->NewEvent());
  for (size_t i = 0; i < variables; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> event, device_->NewEvent());
    download_ready_.push_back(std::move(event));
  }
  return absl::OkStatus();
}

void StepTrace::StepBegins() {
  uploads_ = std::move(next_uploads_);
  next_uploads_.clear();
}

absl::StatusOr<StepTimes> StepTrace::Read(absl::Span<const DeviceEvent* const> uploaded,
                                          absl::Span<const DeviceEvent* const> downloaded,
                                          absl::Span<const size_t> order) const {
  RETURN_IF_ERROR(device_->Synchronize());
  StepTimes times;
  const double forward_begin = Milliseconds(*forward_begin_);
  const double backward_begin = Milliseconds(*backward_begin_);
  times.batch = {0, forward_begin};
  times.forward = {forward_begin, backward_begin};
  times.backward = {backward_begin, Milliseconds(*backward_end_)};
  times.uploads.resize(download_ready_.size());
  times.downloads.resize(download_ready_.size());
  // Copies in one direction run one after the other.
  const StepTimes::Interval* previous = nullptr;
  const auto set = [&previous](StepTimes::Interval* interval, double begin, double end) {
    *interval = {previous == nullptr ? begin : std::max(begin, previous->end), end};
    previous = interval;
  };
  if (!uploaded.empty()) {
    for (const Upload& upload : uploads_) {
      const size_t v = upload.variable;
      const double called =
          backward_begin + absl::ToDoubleMilliseconds(upload.called - loss_arrived_);
      set(&times.uploads[v], called, Milliseconds(*uploaded[v]));
    }
  }
  previous = nullptr;
  if (!downloaded.empty()) {
    for (const size_t variable : order) {
      set(&times.downloads[variable], Milliseconds(*download_ready_[variable]),
          Milliseconds(*downloaded[variable]));
    }
  }
  return times;
}

}  // namespace keelson
