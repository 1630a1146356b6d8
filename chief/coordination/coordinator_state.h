// What the coordinator's lock guards, and the steps in which several parts of it change together.
//
// One lock guards membership, ledger, rounds and loss curve, because most decisions span them: when
// a membership ends, for example, its work may be handed on only after the servers refuse its
// pushes. The lock is never held across a call to a server. What needs one (ending memberships,
// committing a round, persisting the state) is taken out under the lock (TakeEnded, WaitForRound,
// PersistedState), done by a thread of the chief, and reported back (HandOn, RoundCommitted,
// NoteStored).
//
// Four conditions are waited for: `changed` by the chief's calls, `round_staged` by the one thread
// that commits rounds, `members_changed` by calls of members, and `requests_due` by the one thread
// that answers requests without a thread. Whoever changes something wakes those who may wait for
// it. Thousands of members report some times a second, and as many may wait, so that a report wakes
// only those for whom it changes something.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_STATE_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_STATE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/coordination/membership.h"
#include "chief/coordination/model_location.h"
#include "chief/coordination/parked_requests.h"
#include "chief/coordination/save_requests.h"
#include "chief/coordination/snapshot_record.h"
#include "chief/coordination/stall_watch.h"
#include "chief/coordination/stored_versions.h"
#include "chief/coordination/training.h"
#include "chief/coordination/work_ledger.h"
#include "chief/coordination/work_requests.h"
#include "chief/coordination/worker_report.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/cluster/consistency.h"
#include "core/cluster/membership_id.h"

namespace keelson {

// The coordinator owns it, and its faces share it; nobody else uses it.
struct CoordinatorState {
  struct Options {
    uint64_t config_hash = 0;
    // A member that has sent no heartbeat for this long is lost.
    absl::Duration lease = absl::Seconds(10);
    // Work is leased for about this long at the worker's newest speed.
    absl::Duration work_per_lease = absl::Milliseconds(500);
    int64_t max_tickets_per_lease = 64;
    // Steps between two points of the loss curve.
    int64_t loss_interval = 100;
    // See DivergenceWatch.
    double max_loss = 0;
    // A new process of a task may replace one that has sent nothing for this long.
    absl::Duration takeover_after = absl::Seconds(1);
    // As configured (TrainConfig.consistency.mode).
    ConsistencyMode mode = {};
    // While fewer tasks train, no step is begun (CollectiveConfig.min_workers).
    int min_workers = 1;
    // ConsistencyConfig.deterministic_sum.
    bool deterministic_sum = false;
  };

  // `clock` outlives this.
  CoordinatorState(const Options& options, const Clock* clock);

  // ---- Steps that several faces take.

  // Renews the member's lease and counts what it reports. ABORTED: not a member; see Membership.
  // Other errors: see Training::Apply.
  absl::Status AcceptReport(Task task, const MembershipId& id, const WorkerReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Reconciles `held` with the ledger; returns the leases that remain the member's.
  std::vector<uint64_t> ClaimLeases(Task task, uint64_t incarnation,
                                    absl::Span<const HeldLease> held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Follows up on memberships that are over.
  void NoticeEnds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Requests that the job state be persisted: a successor must know what has just changed.
  void RequestPersistence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // See CoordinatorStatus.
  bool Trained() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Workers of a predecessor are expected back.
  bool WorkersAway() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // No step is under way: no lease is out, and no worker is expected back, which may have one that
  // the predecessor granted after it had stored its state. Training has started.
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // How many tasks fewer train than are to.
  int MissingWorkers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Logs when tasks begin to be missing, and when enough are there again.
  void LogMissingWorkers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // ---- Waits.

  // Waits for a change once, not beyond `until`.
  void WaitUntil(absl::Duration until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The same in a call of a member, which is alive while it waits: returns often enough for the
  // caller to renew its lease.
  void WaitAsMember(absl::Duration until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Wakes the chief's calls.
  void Wake() ABSL_LOCKS_EXCLUDED(mu);
  // Wakes the calls of members, and has the requests that wait tried again.
  void WakeMembers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Wakes all calls.
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Wakes the chief's calls, but not who commits rounds, for which steps that are done have changed
  // something.
  void WakeAfterSteps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Wakes those calls for which a report has changed something. `may_free_work`: others may get
  // work since.
  void WakeAfterReport(bool may_free_work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const Options options;
  const Clock* const clock;

  Mutex mu;
  CondVar changed;
  CondVar round_staged;
  CondVar members_changed;
  CondVar requests_due;
  Membership membership ABSL_GUARDED_BY(mu);
  StallWatch stalls ABSL_GUARDED_BY(mu);
  WorkRequests requests ABSL_GUARDED_BY(mu);
  ParkedRequests parked ABSL_GUARDED_BY(mu);
  // Both are set when training starts.
  std::optional<ModelLocation> model ABSL_GUARDED_BY(mu);
  std::optional<Training> training ABSL_GUARDED_BY(mu);
  // True: training continues where a predecessor was.
  bool resumed ABSL_GUARDED_BY(mu) = false;
  // What the calls that wait for steps wait for.
  std::multiset<int64_t> awaited_steps ABSL_GUARDED_BY(mu);
  // The calls that wait until no work is under way.
  int awaiting_idle ABSL_GUARDED_BY(mu) = 0;
  // Memberships that are over, of which the servers have not been told.
  std::vector<uint64_t> newly_ended ABSL_GUARDED_BY(mu);
  SnapshotRecord snapshots ABSL_GUARDED_BY(mu);
  SaveRequests saves ABSL_GUARDED_BY(mu);
  StoredVersions versions ABSL_GUARDED_BY(mu);
  JobPhase phase ABSL_GUARDED_BY(mu) = JobPhase::kWaitingForServers;
  // Whether the log says that tasks are missing.
  bool lacks_workers ABSL_GUARDED_BY(mu) = false;
  // Why the job has failed; empty: it has not.
  std::string error ABSL_GUARDED_BY(mu);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_STATE_H_
