// Succession of chiefs: the job state that is persisted at the servers, and how the next chief
// takes the members and leases over from it.
#include <algorithm>
#include <set>
#include <utility>

#include "chief/coordination/coordinator.h"
#include "core/base/log.h"
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
  MutexLock lock(&mu_);
  resumed_ = true;
  RaiseAttemptBeyond(persisted.attempt());
  membership_.RaiseEpoch(persisted.member_epoch());
  membership_.Inherit(persisted.member_epoch());
  std::set<uint64_t> members;
  for (const v1::PersistedJobState::Member& entry : persisted.members()) {
    // There is no waiting for a task that is not part of this job.
    const absl::StatusOr<Task> task = TaskFromProto(entry.task());
    if (!task.ok()) continue;
    members.insert(entry.incarnation());
    membership_.Expect({*task, entry.incarnation(), entry.peer(), Member::kAway,
                        absl::ZeroDuration(), entry.restarts(), absl::Time(), entry.device(),
                        entry.membership_secret()});
  }
  // The membership of this lease's worker was over, but its work was not handed on.
  for (const v1::PersistedJobState::Lease& lease : persisted.leases()) {
    if (members.insert(lease.worker()).second) newly_ended_.push_back(lease.worker());
  }
  for (const uint64_t incarnation : newly_ended_) membership_.Lose(incarnation);
  snapshots_.TakeOver(persisted);
  BeginTraining(std::move(model), std::move(ledger));
  training_->work().NoteCommittedRounds(committed_rounds_, /*same_mode=*/!persisted.mode_pending());
  NoticeEnds();
  // Members that registered before this call hold no leases; otherwise they would have claimed
  // them.
  for (const Member& member : membership_.Members()) {
    if (member.state == Member::kAlive) ClaimLeases(member.task, member.incarnation, {});
  }
}

void Coordinator::RaiseAttempt(uint32_t at_least) {
  MutexLock lock(&mu_);
  RaiseAttemptBeyond(at_least);
}

void Coordinator::RaiseAttemptBeyond(uint32_t known) {
  first_attempt_ = std::max(first_attempt_, known + kUnheardOfAttempts);
}

void Coordinator::NoteCommittedRounds(int64_t newest) {
  MutexLock lock(&mu_);
  committed_rounds_ = std::max(committed_rounds_, newest);
}

v1::PersistedJobState Coordinator::PersistedState() const {
  MutexLock lock(&mu_);
  v1::PersistedJobState persisted;
  if (!training_.has_value()) return persisted;
  training_->ToPersisted(&persisted);
  for (const Member& member : membership_.Members()) {
    if (!member.over()) FillMember(member, persisted.add_members());
  }
  persisted.set_member_epoch(membership_.epoch());
  snapshots_.ToPersisted(&persisted);
  return persisted;
}

void Coordinator::NoteStored(uint64_t version) {
  MutexLock lock(&mu_);
  versions_.NoteStored(version);
  changed_.NotifyAll();
}

bool Coordinator::WaitUntilStored(absl::Duration longest) {
  const absl::Duration until = Clock::Real()->Monotonic() + longest;
  MutexLock lock(&mu_);
  while (versions_.urgent()) {
    const absl::Duration rest = until - Clock::Real()->Monotonic();
    if (rest <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mu_, rest);
  }
  return true;
}

bool Coordinator::StateUrgent() const {
  MutexLock lock(&mu_);
  return versions_.urgent();
}

void Coordinator::WaitForUrgent(absl::Duration stores_from, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { Wake(); });
  MutexLock lock(&mu_);
  while (!stop.raised()) {
    const bool done = phase_ == JobPhase::kDone;
    if (!done && !newly_ended_.empty()) return;
    const bool urgent = !done && versions_.urgent();
    if (urgent && clock_->Monotonic() >= stores_from) return;
    WaitUntil(urgent ? stores_from : absl::InfiniteDuration());
  }
}

void Coordinator::RequestPersistence() {
  if (!training_.has_value()) return;
  training_->work().Touch();
  versions_.Request(training_->ledger().version());
}

StateVersions Coordinator::state_versions() const {
  MutexLock lock(&mu_);
  return {training_.has_value() ? training_->ledger().version() : 0, versions_.stored()};
}

void Coordinator::RaiseMemberEpoch(uint64_t at_least) {
  MutexLock lock(&mu_);
  membership_.RaiseEpoch(at_least);
}

v1::MemberList Coordinator::MemberList() const {
  MutexLock lock(&mu_);
  v1::MemberList list;
  list.set_epoch(membership_.epoch());
  for (const Member& member : membership_.Members()) {
    if (member.over()) continue;
    v1::MemberList::Member* const entry = list.add_members();
    *entry->mutable_task() = TaskToProto(member.task);
    entry->set_incarnation(member.incarnation);
    entry->set_membership_secret(member.secret);
  }
  return list;
}

uint64_t Coordinator::member_epoch() const {
  MutexLock lock(&mu_);
  return membership_.epoch();
}

std::vector<uint64_t> Coordinator::TakeEnded() {
  MutexLock lock(&mu_);
  return std::exchange(newly_ended_, {});
}

void Coordinator::HandOn(absl::Span<const uint64_t> incarnations) {
  MutexLock lock(&mu_);
  if (!training_.has_value()) return;
  int64_t tickets = 0;
  for (const uint64_t incarnation : incarnations) tickets += training_->work().Release(incarnation);
  if (tickets > 0) LogInfo(tickets, " steps go to others");
  WakeAll();
}

}  // namespace keelson
