// The state of the job: who takes part, which work is leased, how far training is. All decisions
// are made here, without messages or transport.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/coordination/job_persistence.h"
#include "chief/coordination/loss_curve.h"
#include "chief/coordination/member_calls.h"
#include "chief/coordination/member_requests.h"
#include "chief/coordination/member_roster.h"
#include "chief/coordination/round_queue.h"
#include "chief/coordination/training_start.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/cluster/consistency.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// Thread-safe.
class Coordinator {
 public:
  using Options = CoordinatorState::Options;
  using Status = CoordinatorStatus;

  Coordinator(const Options& options, const Clock* clock);

  // ---- Calls of members.

  // Nothing more is handed out, and training is over with the steps under way. The first `reason`
  // (not empty) stays; once training ends early, another call changes nothing.
  // FAILED_PRECONDITION: the job does not train.
  absl::Status EndTraining(std::string reason);

  // An evaluation of the snapshot of `step` with this id (JobState.snapshot_id). One that is not
  // the job's is ignored: training went back behind it, and there is another of that step, or none
  // yet.
  void AcknowledgeEvaluation(int64_t step, uint64_t snapshot_id,
                             const std::map<std::string, double>& metrics);

  // ---- Calls of the chief.

  // Takes effect when the steps under way are done; between async and bounded staleness at once.
  // FAILED_PRECONDITION: the job does not train.
  absl::Status SetMode(const ConsistencyMode& mode);
  // The mode in force.
  ConsistencyMode mode() const;

  void SetPhase(JobPhase phase);
  // The job's snapshot of `step` has this id. Call it before anyone can find the snapshot.
  void NameSnapshot(int64_t step, uint64_t snapshot_id);
  // The newest snapshot.
  void SetSnapshotStep(int64_t step);
  void SetFigures(const v1::TrainingFigures& newest);
  // Ends the job for all members with this reason.
  void Fail(const absl::Status& error);

  // Hands out no more work, and waits until the steps under way are done. False: they were not
  // within `timeout`. Call after StartTraining.
  bool PauseWork(absl::Duration timeout);
  void ResumeWork();

  // Waits until `step` steps are completed, training is over, a loss is reported that is not
  // finite, the clock's monotonic time reaches `until`, or `stop` is raised. Returns
  // completed steps. Call after StartTraining.
  int64_t WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop);

  // Waits for an acknowledgement of `step`. False: not within `timeout`, or `stop` was raised.
  bool WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop);

  // The next point of the loss curve, or nothing while it is not complete. See LossCurve.
  std::optional<LossCurve::Point> TakeLossPoint();
  std::optional<LossCurve::Point> TakeLastLossPoint();

  // ---- Queries.

  Status GetStatus() const;
  JobPhase phase() const;
  // Why the job has failed; empty: it has not.
  std::string error() const;
  // ---- Faces, each with the calls of one kind of caller.
  // Members join, report and leave.
  MemberCalls* members() { return &members_; }
  // Members ask for the model and for work.
  MemberRequests* requests() { return &requests_; }
  // Who belongs to the job, for those who keep leases and tell the servers.
  MemberRoster* roster() { return &roster_; }
  // How training begins.
  TrainingStart* start() { return &start_; }
  // What a successor finds.
  JobPersistence* persistence() { return &persistence_; }
  // The rounds of synchronous mode, for those who commit them.
  RoundQueue* rounds() { return &rounds_; }

 private:
  const std::unique_ptr<CoordinatorState> state_;
  // These figures are the job's in its newest reporting interval.
  v1::TrainingFigures newest_ ABSL_GUARDED_BY(state_->mu);
  MemberCalls members_{state_.get()};
  MemberRequests requests_{state_.get()};
  MemberRoster roster_{state_.get()};
  TrainingStart start_{state_.get()};
  JobPersistence persistence_{state_.get()};
  RoundQueue rounds_{state_.get()};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_H_
