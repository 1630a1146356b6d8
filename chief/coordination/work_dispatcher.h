// Decides which worker gets which work next, in the job's consistency mode. The ledger (WorkLedger)
// records the work; the modes are small state machines above it (StalenessBound, SyncRounds).
//
// Training may end early: then work is handed out only to complete a round under way, and training
// is done when the steps under way are.
//
// A pause hands nothing out either, except to complete a round under way, but training is not over.
//
// A change of the mode waits until the steps under way are done: nothing else is handed out
// meanwhile. Between async and bounded staleness there is nothing to wait for.
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_DISPATCHER_H_
#define KEELSON_CHIEF_COORDINATION_WORK_DISPATCHER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/coordination/staleness_bound.h"
#include "chief/coordination/sync_rounds.h"
#include "chief/coordination/work_ledger.h"
#include "core/cluster/consistency.h"

namespace keelson {

class WorkDispatcher {
 public:
  // Attempts of rounds begin with `first_attempt` (at least 1, greater than all that the job has
  // had) and only rise.
  WorkDispatcher(WorkLedger ledger, const ConsistencyMode& mode, uint32_t first_attempt);

  // A lease of at most `max_tickets` tickets, or one ticket of the round. Returns nothing when
  // there is no work, or the worker has to wait for others; any other call may change that. A round
  // is for `alive_workers` workers. With `place` (SyncRounds::Grant) its tickets have an order,
  // too, in which their gradients are added.
  std::optional<WorkLease> Grant(uint64_t worker, int64_t max_tickets, int64_t alive_workers,
                                 std::optional<int64_t> place = std::nullopt);

  // The first `completed` tickets of the lease are done; for a ticket of a round: its gradient is
  // at all servers, and the step counts when the round is committed. Errors:
  // WorkLedger::Complete's; INVALID_ARGUMENT also: the ticket is contested and was not admitted.
  absl::Status Complete(uint64_t worker, uint64_t lease_id, int64_t completed);

  // Whether the gradient of a round's ticket counts; false also for one of an older attempt.
  bool Admit(uint64_t worker, uint64_t lease_id, int64_t step, uint32_t attempt);

  // The worker's membership is over: no other waits for it. Its leases remain until Release.
  void Forget(uint64_t worker);
  // Takes the worker's unfinished work back for others. Returns the number of tickets.
  int64_t Release(uint64_t worker);

  // Reconciles a lease that a worker holds from an earlier registration. True: it is still the
  // worker's. With `may_adopt`, leases that only a predecessor knew are taken on, unless they are
  // tickets of a round; see WorkLedger::Adopt.
  bool Claim(uint64_t worker, const HeldLease& lease, bool may_adopt,
             std::vector<uint64_t>* superseded);
  // The worker has claimed all that it holds.
  int64_t ReleaseUnconfirmed(uint64_t worker);

  // The workers that hold work which they have not completed, and for which others may wait.
  std::set<uint64_t> Owing() const;

  // ---- Rounds; see RoundQueue.

  std::optional<SyncRounds::Round> StagedRound() const { return rounds_.Staged(); }
  // The round whose tickets are handed out, without contributions.
  std::optional<SyncRounds::Round> OpenRound() const;
  // False: `round` is not the staged round, and nothing happens.
  bool RoundCommitted(const SyncRounds::Round& round);
  bool RoundFailed(const SyncRounds::Round& round);
  // A server has refused the gradient of this ticket. If this chief waits for that, the round is
  // begun again as a newer attempt, since other servers may have the gradient. Returns whether that
  // is so.
  bool NoteRefused(uint64_t worker, uint64_t lease_id, int64_t step, uint32_t attempt);
  // A server says that it has committed round `newest`. If that is the open round, of which too few
  // tickets are staged for this chief to have asked for it, a predecessor's commit came late: the
  // round counts as done, and its records are handed out again. Returns whether that is so.
  bool NoteForeignCommit(int64_t newest);
  // The servers have committed all rounds up to this one. Steps of them that the ledger lacks count
  // as done. Their records count as done, too, if the rounds were of the same mode (`same_mode`)
  // and not contested; otherwise it is unknown which were used, and they are handed out again. Call
  // before any Grant.
  void NoteCommittedRounds(int64_t newest, bool same_mode);

  // ---- Mode.

  void SetMode(const ConsistencyMode& mode);
  // The mode in force, and the next one, which waits for the steps under way.
  const ConsistencyMode& mode() const { return mode_; }
  const std::optional<ConsistencyMode>& next_mode() const { return next_mode_; }
  // The number of the time in which the job has been synchronous without a break, at least 1; 0: it
  // is not.
  uint64_t sync_period() const { return mode_.synchronous() ? sync_period_ : 0; }
  // The mode in force stays until each of these calls has been ended by a ReleaseMode.
  void HoldMode() { ++mode_holds_; }
  void ReleaseMode();

  // ---- End of training.

  // Training ends early, for this reason (not empty). The first reason stays.
  void EndEarly(std::string reason);
  // Empty: training does not end early.
  const std::string& end_reason() const { return end_reason_; }
  // All steps are done; or training ends early and nothing is under way.
  bool Done() const;

  // ---- A pause, for a snapshot that misses no step. It is no part of the state.

  void Pause();
  void EndPause() { paused_ = false; }
  // No lease is out and no round is open.
  bool Idle() const { return !rounds_.open() && !ledger_.AnyLeased(); }

  // ---- A stream; see WorkLedger.

  void AddStreamFile(std::string name, int64_t records);
  void EndStream();

  // ---- State of the work.

  const WorkLedger& ledger() const { return ledger_; }
  void Touch() { ledger_.Touch(); }
  // The ledger's state, with the reason to end and the mode (the next one, if there is one).
  v1::JobState ToState() const;
  void ToPersisted(v1::PersistedJobState* persisted) const;

 private:
  std::optional<WorkLease> GrantOfRound(uint64_t worker, int64_t alive_workers,
                                        std::optional<int64_t> place);
  bool MayGrant() const;
  // Nothing new is begun.
  bool Draining() const { return ends_early() || paused_ || next_mode_.has_value(); }
  bool ends_early() const { return !end_reason_.empty(); }
  // Counts the steps of rounds that were committed before this chief's time.
  void SkipCommittedRounds(bool batches_known);
  // Does what had to wait until nothing is under way; called after each change.
  void Settle();
  // Abandons a round of which no ticket is held.
  void DropIdleRound();
  // Brings the next mode into force if nothing is under way.
  void ApplyNextMode();
  void EnterMode(const ConsistencyMode& mode);

  WorkLedger ledger_;
  ConsistencyMode mode_;
  std::optional<ConsistencyMode> next_mode_;
  uint64_t sync_period_ = 1;  // the present one, or the next one
  int mode_holds_ = 0;
  std::string end_reason_;
  bool paused_ = false;
  StalenessBound bound_;
  SyncRounds rounds_;
  uint32_t attempt_;
  // The newest round that a server has committed; -1: none.
  int64_t committed_rounds_ = -1;
  // Likewise of those that this chief commits, and so, sooner or later, at all servers. Those of
  // another chief a server may lack for ever.
  std::optional<int64_t> own_round_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_DISPATCHER_H_
