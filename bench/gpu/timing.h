// Measures a GPU's time by events around many calls, so that neither the start of a call nor the
// wait for its end counts.
#ifndef KEELSON_BENCH_GPU_TIMING_H_
#define KEELSON_BENCH_GPU_TIMING_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "core/device/device.h"

namespace keelson::bench {

struct TimingOptions {
  int repetitions = 15;
  // The least duration of one repetition, which makes the call as often as that takes.
  double milliseconds = 10;
};

// Two points in the work of a GPU.
class GpuTimer {
 public:
  virtual ~GpuTimer() = default;

  // After the work that was started so far.
  virtual void Begin() = 0;
  virtual void End() = 0;
  // From Begin to End; waits for End. The error of any work before it.
  virtual absl::StatusOr<double> Milliseconds() = 0;
};

// A timer of the operations of `device`, which outlives it.
absl::StatusOr<std::unique_ptr<GpuTimer>> NewDeviceTimer(Device* device);

// Milliseconds of one call of `work`, which starts something on the GPU and does not wait; after
// three calls that do not count.
absl::StatusOr<Spread> MillisecondsPerCall(const TimingOptions& options, GpuTimer* timer,
                                           absl::FunctionRef<void()> work);

// `amount` in each of the times; the fastest time gives the greatest rate. 0 for times of 0.
Spread PerSecond(double amount, const Spread& milliseconds);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_TIMING_H_
