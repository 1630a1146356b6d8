// Succession of chiefs: the job state that is persisted at the servers, and how the next chief
// takes the members and leases over from it.
#include <algorithm>
#include <set>
#include <utility>

#include "chief/coordination/coordinator.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

// More attempts than a chief can have begun beyond those that it persisted or that a server has
// seen.
constexpr uint32_t kUnheardOfAttempts = 1000;

void FillMember(const Member& member, v1::PersistedJobState::Member* out) {
  *out->mutable_task() = TaskToProto(member.task);
  out->set_incarnation(member.incarnation);
  out->set_peer(member.peer);
  out->set_restarts(member.restarts);
  out->set_device(member.device);
  out->set_membership_secret(member.secret);
}

}  // namespace

void Coordinator::Resume(ModelLocation model, WorkLedger ledger,
                         const v1::PersistedJobState& persisted) {
  MutexLock lock(&state_->mu);
  state_->resumed = true;
  RaiseAttemptBeyond(persisted.attempt());
  state_->membership.RaiseEpoch(persisted.member_epoch());
  state_->membership.Inherit(persisted.member_epoch());
  std::set<uint64_t> members;
  for (const v1::PersistedJobState::Member& entry : persisted.members()) {
    // There is no waiting for a task that is not part of this job.
    const absl::StatusOr<Task> task = TaskFromProto(entry.task());
    if (!task.ok()) continue;
    members.insert(entry.incarnation());
    state_->membership.Expect({*task, entry.incarnation(), entry.peer(), Member::kAway,
                               absl::ZeroDuration(), entry.restarts(), absl::Time(), entry.device(),
                               entry.membership_secret()});
  }
  // The membership of this lease's worker was over, but its work was not handed on.
  for (const v1::PersistedJobState::Lease& lease : persisted.leases()) {
    if (members.insert(lease.worker()).second) state_->newly_ended.push_back(lease.worker());
  }
  for (const uint64_t incarnation : state_->newly_ended) state_->membership.Lose(incarnation);
  state_->snapshots.TakeOver(persisted);
  BeginTraining(std::move(model), std::move(ledger));
  state_->training->work().NoteCommittedRounds(committed_rounds_,
                                               /*same_mode=*/!persisted.mode_pending());
  state_->NoticeEnds();
  // Members that registered before this call hold no leases; otherwise they would have claimed
  // them.
  for (const Member& member : state_->membership.Members()) {
    if (member.state == Member::kAlive) state_->ClaimLeases(member.task, member.incarnation, {});
  }
}

void Coordinator::RaiseAttempt(uint32_t at_least) {
  MutexLock lock(&state_->mu);
  RaiseAttemptBeyond(at_least);
}

void Coordinator::RaiseAttemptBeyond(uint32_t known) {
  first_attempt_ = std::max(first_attempt_, known + kUnheardOfAttempts);
}

void Coordinator::NoteCommittedRounds(int64_t newest) {
  MutexLock lock(&state_->mu);
  committed_rounds_ = std::max(committed_rounds_, newest);
}

v1::PersistedJobState Coordinator::PersistedState() const {
  MutexLock lock(&state_->mu);
  v1::PersistedJobState persisted;
  if (!state_->training.has_value()) return persisted;
  state_->training->ToPersisted(&persisted);
  for (const Member& member : state_->membership.Members()) {
    if (!member.over()) FillMember(member, persisted.add_members());
  }
  persisted.set_member_epoch(state_->membership.epoch());
  state_->snapshots.ToPersisted(&persisted);
  return persisted;
}

void Coordinator::NoteStored(uint64_t version) {
  MutexLock lock(&state_->mu);
  state_->versions.NoteStored(version);
  state_->changed.NotifyAll();
}

bool Coordinator::WaitUntilStored(absl::Duration longest) {
  const absl::Duration until = Clock::Real()->Monotonic() + longest;
  MutexLock lock(&state_->mu);
  while (state_->versions.urgent()) {
    const absl::Duration rest = until - Clock::Real()->Monotonic();
    if (rest <= absl::ZeroDuration()) return false;
    state_->changed.WaitFor(&state_->mu, rest);
  }
  return true;
}

bool Coordinator::StateUrgent() const {
  MutexLock lock(&state_->mu);
  return state_->versions.urgent();
}

void Coordinator::WaitForUrgent(absl::Duration stores_from, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  while (!stop.raised()) {
    const bool done = state_->phase == JobPhase::kDone;
    if (!done && !state_->newly_ended.empty()) return;
    const bool urgent = !done && state_->versions.urgent();
    if (urgent && state_->clock->Monotonic() >= stores_from) return;
    state_->WaitUntil(urgent ? stores_from : absl::InfiniteDuration());
  }
}

StateVersions Coordinator::state_versions() const {
  MutexLock lock(&state_->mu);
  return {state_->training.has_value() ? state_->training->ledger().version() : 0,
          state_->versions.stored()};
}

void Coordinator::RaiseMemberEpoch(uint64_t at_least) {
  MutexLock lock(&state_->mu);
  state_->membership.RaiseEpoch(at_least);
}

}  // namespace keelson
