// The calls with which a member joins the job, reports and leaves it.
#ifndef KEELSON_CHIEF_COORDINATION_MEMBER_CALLS_H_
#define KEELSON_CHIEF_COORDINATION_MEMBER_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/work_ledger.h"
#include "chief/coordination/worker_report.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class MemberCalls {
 public:
  // `state` outlives this.
  explicit MemberCalls(CoordinatorState* state) : state_(state) {}

  // Joins, or joins again with the leases that the caller still holds (also those that a
  // predecessor granted). Returns which of these leases are still the caller's.
  // FAILED_PRECONDITION: another configuration. ALREADY_EXISTS, ABORTED: see Membership.
  // ABORTED also when work that the caller holds, and may be pushing, is not its own any more: a
  // member's pushes are applied, so it has to join with another id.
  // `step_bound`: see StallWatch::Join.
  // UNAVAILABLE: the chief has not yet decided how the job goes on, and so what becomes of `held`
  // and of those who were members before (`told_epoch`).
  absl::StatusOr<std::vector<uint64_t>> Register(Task task, const MembershipId& id,
                                                 uint64_t config_hash, std::string peer,
                                                 absl::Span<const HeldLease> held = {},
                                                 std::string device = "", uint64_t told_epoch = 0,
                                                 absl::Duration step_bound = absl::ZeroDuration());

  // ABORTED: not a member; see Membership.
  absl::Status Heartbeat(Task task, const MembershipId& id, const WorkerReport& report);

  // See Membership.
  absl::Duration HeartbeatInterval() const;

  // Whether the gradient of a synchronous ticket counts. ABORTED as in Heartbeat.
  absl::StatusOr<bool> Admit(Task task, const MembershipId& id, uint64_t lease_id, int64_t step,
                             uint32_t attempt);

  // ABORTED: not a member.
  absl::Status Leave(Task task, const MembershipId& id, const WorkerReport& report);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MEMBER_CALLS_H_
