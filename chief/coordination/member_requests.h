// Members' requests for the model and for work, which wait until there is an answer.
//
// A request that cannot be answered yet is tried again when something may have changed for it, and
// often enough to renew its member's lease: by the thread that waits in the call (AcquireWork,
// WaitForModel), or else by AnswerWaiting.
#ifndef KEELSON_CHIEF_COORDINATION_MEMBER_REQUESTS_H_
#define KEELSON_CHIEF_COORDINATION_MEMBER_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/model_location.h"
#include "chief/coordination/parked_requests.h"
#include "chief/coordination/work_ledger.h"
#include "chief/coordination/worker_report.h"
#include "core/base/stop_signal.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class MemberRequests {
 public:
  using RequestId = ParkedRequests::Id;
  using ModelAnswer = absl::StatusOr<ModelLocation>;
  using WorkAnswer = absl::StatusOr<std::optional<WorkLease>>;

  // `state` outlives this.
  explicit MemberRequests(CoordinatorState* state) : state_(state) {}

  // DEADLINE_EXCEEDED: not known within `max_wait`. ABORTED: not a member. FAILED_PRECONDITION:
  // the job has failed; the text has the reason.
  ModelAnswer WaitForModel(Task task, const MembershipId& id, absl::Duration max_wait);

  // Returns nothing when there was no work within `max_wait`, or the last snapshot is there; see
  // JobControl::phase(). ABORTED: not a member. A `sequence` that is not 0 rises with each new
  // request of an incarnation. A request that comes again gets the lease that the first one was
  // granted, and its sums are not counted again; one that a newer request has overtaken gets
  // nothing. So no lease is granted that no worker receives.
  WorkAnswer AcquireWork(Task task, const MembershipId& id, const WorkerReport& report,
                         absl::Duration max_wait, uint64_t sequence = 0);

  // WaitForModel and AcquireWork without a thread that waits. `done` is called once, with no lock
  // held: by this call, which then returns nothing, or by AnswerWaiting. A member is alive while
  // its request waits, and has one of each kind: a newer one ends the older, as if its time had
  // passed.
  std::optional<RequestId> RequestModel(Task task, const MembershipId& id, absl::Duration max_wait,
                                        std::function<void(ModelAnswer)> done);
  std::optional<RequestId> RequestWork(Task task, const MembershipId& id,
                                       const WorkerReport& report, absl::Duration max_wait,
                                       uint64_t sequence, std::function<void(WorkAnswer)> done);
  // Nobody waits for this answer any more. False: it is or was given; otherwise `done` is not
  // called.
  bool Withdraw(RequestId id);
  // Answers requests that wait, until `stop` is raised. Call it on a thread of its own.
  void AnswerWaiting(const StopSignal& stop);

 private:
  // What a member asks work for.
  struct WorkRequest {
    Task task;
    MembershipId id;
    uint64_t sequence = 0;
  };

  // Accepts the report of a request for work, and notes that it is the newest.
  absl::Status BeginRequest(const WorkRequest& request, const WorkerReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // The answers at this moment, or nothing: the request waits, which it cannot if it is the `last`
  // attempt.
  std::optional<WorkAnswer> TryWork(const WorkRequest& request, bool last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  std::optional<ModelAnswer> TryModel(Task task, const MembershipId& id, bool last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // Fewer tasks train than are to, and nothing that is under way needs those that are there.
  bool LacksWorkers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  std::optional<WorkLease> GrantLease(const WorkRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  RequestId Park(ParkedRequests::Kind kind, uint64_t incarnation, absl::Duration max_wait,
                 ParkedRequests::Attempt attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MEMBER_REQUESTS_H_
