// The end of a job whose training is over: its final snapshot, its final evaluation and the DONE
// marker.
#ifndef KEELSON_CHIEF_LIFECYCLE_JOB_ENDING_H_
#define KEELSON_CHIEF_LIFECYCLE_JOB_ENDING_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/leadership.h"
#include "chief/lifecycle/save_schedule.h"
#include "chief/servers/server_group.h"
#include "chief/servers/server_supervisor.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/done_marker.h"

namespace keelson {

// Not thread-safe: the thread of the job's lifecycle runs it.
class JobEnding {
 public:
  struct Options {
    uint64_t config_hash = 0;
    // The end waits for an evaluator even if it has not registered yet.
    bool expects_evaluator = false;
    // How long the final evaluation may take.
    absl::Duration evaluation_timeout = absl::Minutes(10);
    // How long members have to learn that the job is done before the chief's server stops.
    absl::Duration leave_wait = absl::Seconds(3);
    // Between tries to write the final snapshot or the marker.
    RetryPause retry = RetryPause(absl::Seconds(1), absl::Minutes(1));
  };

  // When `stop` is raised, the chief is to leave. All outlive this.
  JobEnding(const Options& options, CheckpointDirectory* directory, Coordinator* coordinator,
            ServerGroup* servers, ServerSupervisor* supervisor, const Snapshotter* snapshotter,
            JobSnapshots* snapshots, Leadership* leadership, const Clock* clock,
            const StopSignal* stop)
      : options_(options),
        directory_(directory),
        coordinator_(coordinator),
        servers_(servers),
        supervisor_(supervisor),
        snapshotter_(snapshotter),
        snapshots_(snapshots),
        leadership_(leadership),
        clock_(clock),
        stop_(stop) {}

  // Writes the final snapshot, waits for its evaluation if an evaluator is there or expected, and
  // writes the DONE marker; then stops the supervision, tells the servers that the job is over and
  // lets the members leave. What cannot be written is tried again for as long as it takes.
  // `before`: the marker that the chief has found at its start. Of a job that it says to be done at
  // this step all evaluations are over.
  // CANCELLED: `stop` was raised before the marker was written; the text has the error of what
  // could not be written.
  absl::Status Run(const std::optional<DoneMarker>& before);

 private:
  // Repeats `call` until it succeeds, with growing pauses. CANCELLED: stopped.
  absl::Status TryUntilStopped(absl::FunctionRef<absl::Status()> call);
  void AwaitFinalEvaluation(int64_t step);

  const Options options_;
  CheckpointDirectory* const directory_;
  Coordinator* const coordinator_;
  ServerGroup* const servers_;
  ServerSupervisor* const supervisor_;
  const Snapshotter* const snapshotter_;
  JobSnapshots* const snapshots_;
  Leadership* const leadership_;
  const Clock* const clock_;
  const StopSignal* const stop_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_JOB_ENDING_H_
