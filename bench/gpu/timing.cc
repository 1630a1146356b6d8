#include "bench/gpu/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr int kWarmUpCalls = 3;
constexpr double kMostCalls = 1000;

class DeviceTimer : public GpuTimer {
 public:
  DeviceTimer(Device* device, std::unique_ptr<DeviceEvent> begin, std::unique_ptr<DeviceEvent> end)
      : device_(device), begin_(std::move(begin)), end_(std::move(end)) {}

  void Begin() override { device_->Record(begin_.get()); }
  void End() override { device_->Record(end_.get()); }
  absl::StatusOr<double> Milliseconds() override {
    RETURN_IF_ERROR(device_->Await(*end_));
    return device_->MillisecondsBetween(*begin_, *end_);
  }

 private:
  Device* const device_;
  const std::unique_ptr<DeviceEvent> begin_;
  const std::unique_ptr<DeviceEvent> end_;
};

absl::StatusOr<double> MillisecondsOf(int calls, GpuTimer* timer, absl::FunctionRef<void()> work) {
  timer->Begin();
  for (int i = 0; i < calls; ++i) work();
  timer->End();
  ASSIGN_OR_RETURN(const double milliseconds, timer->Milliseconds());
  return milliseconds / calls;
}

double Rate(double amount, double milliseconds) {
  return milliseconds > 0 ? amount / (milliseconds / 1000) : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> NewDeviceTimer(Device* device) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> begin, device->NewEvent());
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> end, device->NewEvent());
  return std::make_unique<DeviceTimer>(device, std::move(begin), std::move(end));
}

absl::StatusOr<Spread> MillisecondsPerCall(const TimingOptions& options, GpuTimer* timer,
                                           absl::FunctionRef<void()> work) {
  RETURN_IF_ERROR(MillisecondsOf(kWarmUpCalls, timer, work).status());
  ASSIGN_OR_RETURN(const double guess, MillisecondsOf(1, timer, work));
  const double wanted = options.milliseconds / std::max(guess, 1e-3);
  const int calls = static_cast<int>(std::ceil(std::clamp(wanted, 1.0, kMostCalls)));
  std::vector<double> milliseconds;
  for (int i = 0; i < options.repetitions; ++i) {
    ASSIGN_OR_RETURN(milliseconds.emplace_back(), MillisecondsOf(calls, timer, work));
  }
  return SpreadOf(std::move(milliseconds));
}

Spread PerSecond(double amount, const Spread& milliseconds) {
  return {Rate(amount, milliseconds.median), Rate(amount, milliseconds.max),
          Rate(amount, milliseconds.min)};
}

}  // namespace keelson::bench
