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
#include "chief/coordination/loss_curve.h"
#include "chief/coordination/member_calls.h"
#include "chief/coordination/member_requests.h"
#include "chief/coordination/member_roster.h"
#include "chief/coordination/model_location.h"
#include "chief/coordination/stored_versions.h"
#include "chief/coordination/sync_rounds.h"
#include "chief/coordination/work_ledger.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/cluster/consistency.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// Thread-safe.
class Coordinator {
 public:
  using Options = CoordinatorState::Options;
  using Status = CoordinatorStatus;

  // A step of synchronous mode whose gradients are to be applied: {step, attempt, contributions}.
  using Round = SyncRounds::Round;

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

  // Begins to hand out work. The mode is the ledger's, if its state was written with this
  // configuration and names one; otherwise it is the configured one.
  void StartTraining(ModelLocation model, WorkLedger ledger);

  // Continues where a predecessor was. `ledger` was restored from the job state persisted at the
  // servers (WorkLedger::FromPersisted), or from a snapshot that is newer than it (FromState).
  // `persisted` is that state: its members are expected back with their leases, and nothing
  // is handed out until each has registered or is lost. Its newest snapshot and newest evaluation
  // are taken over. Call RaiseAttempt, RaiseMemberEpoch and NoteCommittedRounds before it.
  void Resume(ModelLocation model, WorkLedger ledger, const v1::PersistedJobState& persisted);

  // A predecessor's rounds have reached at least this attempt (ShardStatus.open_attempt). Later
  // attempts are far greater, so that none is used twice, not even one that no server has seen.
  // Without this call attempts begin with the seconds since 2020.
  void RaiseAttempt(uint32_t at_least);

  // The newest epoch of a predecessor's MemberList that a server knows; later ones are far greater.
  void RaiseMemberEpoch(uint64_t at_least);

  // The newest round that a server has committed (ShardStatus.committed_round). The persisted job
  // state may be older; rounds up to this one are done. Before training goes on, the caller must
  // commit the round (CommitRound with the mode's replicas_to_aggregate) at every server that holds
  // its pushes uncommitted (whose open_round it is).
  void NoteCommittedRounds(int64_t newest);

  // The job state to persist at the servers, with version `job.state_version`. Before training it
  // has the members only.
  v1::PersistedJobState PersistedState() const;
  // The servers hold the persisted job state of this version.
  void NoteStored(uint64_t version);
  // True: something that a successor must know (a member joined, the mode was changed) is not yet
  // persisted at the servers (NoteStored), so that the state should be stored at once.
  bool StateUrgent() const;
  // Waits until the servers hold all that a successor must know. False: that took longer than
  // `longest` (real time).
  bool WaitUntilStored(absl::Duration longest);

  // Waits until TakeEnded has something to return, until StateUrgent and the clock's monotonic
  // time is at least `stores_from`, or until `stop` is raised. A job that is done has neither.
  void WaitForUrgent(absl::Duration stores_from, const StopSignal& stop);

  // Synchronous mode: a round whose pushes are all at the servers, to be committed there. The same
  // one is returned until it is reported as committed or failed, so pause before trying it again.
  // Returns nothing when there is none within `max_wait`, or when `stop` (may be null) is raised.
  std::optional<Round> WaitForRound(absl::Duration max_wait, const StopSignal* stop = nullptr);
  // At least one server has applied the round, and its step counts. A server that could not was
  // restarted and lacks this step like all others since its snapshot.
  void RoundCommitted(const Round& round);
  // No server has applied it, and one cannot: its pushes are asked for again as a new attempt.
  void RoundFailed(const Round& round);
  // A server has committed round `newest`, whoever asked it to; see WorkDispatcher.
  void NoteForeignCommit(int64_t newest);

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

  // The ledger's state for a snapshot, with the configuration's hash and the mode.
  v1::JobState LedgerState() const;

  // ---- Queries.

  Status GetStatus() const;
  JobPhase phase() const;
  // Why the job has failed; empty: it has not.
  std::string error() const;
  StateVersions state_versions() const;

  // ---- Faces, each with the calls of one kind of caller.
  // Members join, report and leave.
  MemberCalls* members() { return &members_; }
  // Members ask for the model and for work.
  MemberRequests* requests() { return &requests_; }
  // Who belongs to the job, for those who keep leases and tell the servers.
  MemberRoster* roster() { return &roster_; }

 private:
  void RaiseAttemptBeyond(uint32_t known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void BeginTraining(ModelLocation model, WorkLedger ledger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  const std::unique_ptr<CoordinatorState> state_;
  uint32_t first_attempt_ ABSL_GUARDED_BY(state_->mu);
  int64_t committed_rounds_ ABSL_GUARDED_BY(state_->mu) = -1;
  // These figures are the job's in its newest reporting interval.
  v1::TrainingFigures newest_ ABSL_GUARDED_BY(state_->mu);
  MemberCalls members_{state_.get()};
  MemberRequests requests_{state_.get()};
  MemberRoster roster_{state_.get()};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_H_
