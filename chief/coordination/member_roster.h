// Who belongs to the job: whose membership ends because nothing is heard of it, and whom the
// servers are told of before its work goes to others.
#ifndef KEELSON_CHIEF_COORDINATION_MEMBER_ROSTER_H_
#define KEELSON_CHIEF_COORDINATION_MEMBER_ROSTER_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/coordination/coordinator_state.h"
#include "core/cluster/task.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class MemberRoster {
 public:
  // `state` outlives this.
  explicit MemberRoster(CoordinatorState* state) : state_(state) {}

  // ---- Leases.

  // Loses the members whose lease has passed, and the workers that have stood still for too long
  // (StallWatch). Their work stays theirs until HandOn. Call some times a second.
  void ExpireLeases();
  // The process of this task does not answer others: if it stays silent here too, it is lost long
  // before its lease has passed (Membership::Suspect).
  void Suspect(const Task& task);
  // The chief itself stood still for the last `gap`, so that nobody could reach it: leases last
  // longer by it, and no worker has stood still.
  void ExtendLeases(absl::Duration gap);
  // No worker can complete a step at present, because a server is away.
  void ExcuseSteps();
  absl::Duration lease() const { return state_->options.lease; }

  // ---- What the servers are told.

  // Who belongs to the job: those who are alive, and those of a predecessor who may come back.
  v1::MemberList MemberList() const;
  // The epoch of that list.
  uint64_t epoch() const;
  // Memberships that ended since the last call, each once. The caller announces the MemberList to
  // the servers, which then refuse their pushes; only then may HandOn give their work to others.
  std::vector<uint64_t> TakeEnded();
  void HandOn(absl::Span<const uint64_t> incarnations);

  // ---- Queries.

  bool AnyAlive(Role role) const;
  // Waits until no member is alive. False: not within `timeout`.
  bool WaitUntilAlone(absl::Duration timeout);

 private:
  // Loses the workers that have stood still for too long.
  void LoseStalled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  bool EveryoneLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MEMBER_ROSTER_H_
