// Watches how a job advances, through the count of pushes that one of its servers keeps.
#ifndef KEELSON_TESTS_SUPPORT_STEP_WATCH_H_
#define KEELSON_TESTS_SUPPORT_STEP_WATCH_H_

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"

namespace keelson {

// Asks a server for its state about 100 times a second, from a thread of its own, until it is
// destroyed; while the server does not answer there are no samples. Thread-safe.
class StepWatch {
 public:
  explicit StepWatch(const std::string& server_address);
  ~StepWatch();

  // The newest sample; -1: there is none.
  int64_t step() const;
  // Waits until the server has counted `step`, and for a second of samples, so that there is a
  // speed to compare with. Fails the test after 60 s.
  void WaitForStep(int64_t step) const;

  // The job runs at full speed again: several steps took hardly longer than they did on average in
  // the second before `event`. Waits for it; fails the test after `limit`. Returns the time from
  // `event` to the first of these steps.
  absl::Duration WaitForFullSpeed(absl::Time event, absl::Duration limit = absl::Seconds(60)) const;

  // The longest time since `event` in which no step was counted.
  absl::Duration LongestPauseSince(absl::Time event) const;

  // How often the server's count fell, and how often it had another store than before.
  struct Setbacks {
    int falls = 0;
    int64_t steps_lost = 0;  // in all
    int new_stores = 0;
  };
  Setbacks setbacks() const;

 private:
  struct Sample {
    absl::Time time;
    int64_t step = 0;
    uint64_t store_id = 0;
  };

  void Run(const std::string& address);
  double StepsPerSecondBefore(absl::Time time) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time FullSpeedSince(absl::Time event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  StopSignal stop_;

  mutable Mutex mu_;
  mutable CondVar sampled_;
  std::vector<Sample> samples_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_STEP_WATCH_H_
