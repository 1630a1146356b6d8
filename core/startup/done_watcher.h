// Watches the model directory for the end of the job, beside a task's work.
#ifndef KEELSON_CORE_STARTUP_DONE_WATCHER_H_
#define KEELSON_CORE_STARTUP_DONE_WATCHER_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/startup/role_program.h"

namespace keelson {

// The step at which this job is done according to the model directory; nothing: it is not done. A
// job is done when its marker was written for this configuration, or for at least as many steps.
// DATA_LOSS: the marker is damaged.
absl::StatusOr<std::optional<int64_t>> DoneStepOf(const RoleContext& context);

// A task learns of the job's end from the chief. One that was late, or was being restarted, no
// longer finds a chief; it learns of the end from the marker. Has a thread of its own.
class DoneWatcher {
 public:
  // Raises `stop` when the marker exists and still exists `interval` later, which gives the chief
  // time to announce the end first. Both outlive the watcher.
  DoneWatcher(const RoleContext& context, StopSignal* stop,
              absl::Duration interval = absl::Seconds(1));
  ~DoneWatcher();

  // `stop` was raised by this watcher.
  bool done() const { return done_; }

  // The status of work that `stop` may have ended: OK when it was cancelled because of the marker.
  absl::Status Explain(const absl::Status& work) const;

 private:
  void Watch();

  const RoleContext& context_;
  StopSignal* const stop_;
  const absl::Duration interval_;
  std::atomic<bool> done_{false};
  StopSignal end_;
  Thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_DONE_WATCHER_H_
