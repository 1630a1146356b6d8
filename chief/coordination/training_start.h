// How the training of a job begins: anew, from a snapshot, or where a predecessor of this chief
// was.
#ifndef KEELSON_CHIEF_COORDINATION_TRAINING_START_H_
#define KEELSON_CHIEF_COORDINATION_TRAINING_START_H_

#include <cstdint>

#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/model_location.h"
#include "chief/coordination/work_ledger.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class TrainingStart {
 public:
  // `state` outlives this.
  explicit TrainingStart(CoordinatorState* state);

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

 private:
  void RaiseAttemptBeyond(uint32_t known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void BeginTraining(ModelLocation model, WorkLedger ledger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // Says so if the job goes on with another mode than the configured one.
  void LogOtherMode() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  CoordinatorState* const state_;
  uint32_t first_attempt_ ABSL_GUARDED_BY(state_->mu);
  int64_t committed_rounds_ ABSL_GUARDED_BY(state_->mu) = -1;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_TRAINING_START_H_
