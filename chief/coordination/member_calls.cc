#include "chief/coordination/member_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

// Whether the member may have a push under way of work that is not its own any more. Rounds refuse
// such pushes by their attempts.
bool AnyGivenAway(absl::Span<const HeldLease> held, absl::Span<const uint64_t> kept) {
  return std::any_of(held.begin(), held.end(), [&](const HeldLease& lease) {
    const bool unfinished = lease.completed < static_cast<int64_t>(lease.tickets.size());
    return lease.attempt == 0 && unfinished &&
           std::find(kept.begin(), kept.end(), lease.id) == kept.end();
  });
}

absl::Status GivenAway(Task task, absl::string_view peer) {
  return absl::AbortedError(absl::StrCat("membership of ", task.ToString(), " at ", peer,
                                         " is over: work that it holds is not its own any more"));
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> MemberCalls::Register(Task task, const MembershipId& id,
                                                            uint64_t config_hash, std::string peer,
                                                            absl::Span<const HeldLease> held,
                                                            std::string device, uint64_t told_epoch,
                                                            absl::Duration step_bound) {
  if (config_hash != state_->options.config_hash) {
    const absl::Status mismatch = ConfigMismatch(state_->options.config_hash, config_hash,
                                                 absl::StrCat(task.ToString(), " (", peer, ")"));
    LogError("refused: ", mismatch.message());
    return mismatch;
  }
  const uint64_t incarnation = id.incarnation;
  MutexLock lock(&state_->mu);
  const bool returns = !held.empty() || told_epoch != 0;
  if (returns && state_->phase == JobPhase::kWaitingForServers) {
    return absl::UnavailableError("the chief does not know yet how the job goes on; ask again");
  }
  const Member* const known = state_->membership.Find(task);
  const bool joins =
      known == nullptr || known->incarnation != incarnation || known->state != Member::kAlive;
  const absl::Status registered =
      state_->membership.Register(task, id, peer, std::move(device), told_epoch);
  state_->NoticeEnds();
  RETURN_IF_ERROR(registered);
  if (Trains(task.role)) state_->stalls.Join(incarnation, step_bound);
  std::vector<uint64_t> kept = state_->ClaimLeases(task, incarnation, held);
  if (state_->training.has_value() && AnyGivenAway(held, kept)) {
    state_->membership.Lose(incarnation);
    state_->NoticeEnds();
    return GivenAway(task, peer);
  }
  if (joins) {
    LogInfo(task.ToString(), " joined (", peer, ")",
            held.empty() ? "" : absl::StrCat(" with ", kept.size(), " work leases"));
    state_->RequestPersistence();
  }
  state_->WakeAll();
  return kept;
}

absl::Status MemberCalls::Heartbeat(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&state_->mu);
  return state_->AcceptReport(task, id, report);
}

absl::Duration MemberCalls::HeartbeatInterval() const {
  MutexLock lock(&state_->mu);
  return state_->membership.HeartbeatInterval();
}

absl::StatusOr<bool> MemberCalls::Admit(Task task, const MembershipId& id, uint64_t lease_id,
                                        int64_t step, uint32_t attempt) {
  MutexLock lock(&state_->mu);
  RETURN_IF_ERROR(state_->membership.Heartbeat(task, id));
  return state_->training.has_value() &&
         state_->training->work().Admit(id.incarnation, lease_id, step, attempt);
}

absl::Status MemberCalls::Leave(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&state_->mu);
  RETURN_IF_ERROR(state_->AcceptReport(task, id, report));
  RETURN_IF_ERROR(state_->membership.Leave(task, id));
  state_->NoticeEnds();
  return absl::OkStatus();
}

}  // namespace keelson
