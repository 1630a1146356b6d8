// The course of the job: its phase, its mode, pauses, and the end of its training.
#ifndef KEELSON_CHIEF_COORDINATION_JOB_CONTROL_H_
#define KEELSON_CHIEF_COORDINATION_JOB_CONTROL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/coordinator_status.h"
#include "core/base/stop_signal.h"
#include "core/cluster/consistency.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class JobControl {
 public:
  // `state` outlives this.
  explicit JobControl(CoordinatorState* state) : state_(state) {}

  // ---- Phase.

  void SetPhase(JobPhase phase);
  JobPhase phase() const;
  // Ends the job for all members with this reason.
  void Fail(const absl::Status& error);
  // Why the job has failed; empty: it has not.
  std::string error() const;

  // ---- What may be changed while the job trains.

  // Takes effect when the steps under way are done; between async and bounded staleness at once.
  // FAILED_PRECONDITION: the job does not train. INVALID_ARGUMENT: a synchronous mode, and the data
  // is a stream, of which nobody knows whether there are enough records for a round.
  absl::Status SetMode(const ConsistencyMode& mode);
  // The mode in force.
  ConsistencyMode mode() const;
  // WorkDispatcher::sync_period. Call the three after training has started.
  uint64_t sync_period() const;
  // Returns the period; the mode in force stays until each of these calls has been ended by a
  // ReleaseMode. A change meanwhile hands nothing out, as one that waits for steps.
  uint64_t HoldMode();
  void ReleaseMode();

  // Nothing more is handed out, and training is over with the steps under way. The first `reason`
  // (not empty) stays; once training ends early, another call changes nothing.
  // FAILED_PRECONDITION: the job does not train.
  absl::Status EndTraining(std::string reason);

  // ---- Waits for steps. Call them after training has started.

  // Hands out no more work, and waits until the steps under way are done, those too of a
  // predecessor's workers that are expected back. False: they were not within `timeout`.
  bool PauseWork(absl::Duration timeout);
  void ResumeWork();

  // Waits until `step` steps are completed, training is over, a loss is reported that is not
  // finite, a snapshot is wanted (SnapshotWishes), the clock's monotonic time reaches `until`, or
  // `stop` is raised. Returns completed steps.
  int64_t WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_JOB_CONTROL_H_
