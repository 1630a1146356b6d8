#include "chief/coordination/member_roster.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/cluster/task_proto.h"

namespace keelson {

void MemberRoster::ExpireLeases() {
  MutexLock lock(&state_->mu);
  state_->membership.ExpireLeases();
  LoseStalled();
  state_->NoticeEnds();
}

void MemberRoster::Suspect(const Task& task) {
  MutexLock lock(&state_->mu);
  state_->membership.Suspect(task);
}

void MemberRoster::LoseStalled() {
  if (!state_->training.has_value()) return;
  for (const StallWatch::Stalled& stalled : state_->stalls.Look(state_->training->work().Owing())) {
    const Member* const member = state_->membership.FindPresent(stalled.incarnation);
    if (member == nullptr) continue;
    LogWarning(NameOf(*member), " sends heartbeats, but has completed no step for ",
               absl::FormatDuration(stalled.since), ", expected one within ",
               absl::FormatDuration(stalled.bound), "; others get its work");
    state_->membership.Lose(stalled.incarnation);
  }
}

void MemberRoster::ExtendLeases(absl::Duration gap) {
  MutexLock lock(&state_->mu);
  state_->membership.ExtendLeases(gap);
  state_->stalls.Excuse();
}

void MemberRoster::ExcuseSteps() {
  MutexLock lock(&state_->mu);
  state_->stalls.Excuse();
}

bool MemberRoster::WaitUntilAlone(absl::Duration timeout) {
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  while (!EveryoneLeft()) {
    if (state_->clock->Monotonic() >= until) return false;
    state_->WaitUntil(until);
  }
  return true;
}

bool MemberRoster::EveryoneLeft() const {
  const std::vector<Member> members = state_->membership.Members();
  return std::none_of(members.begin(), members.end(),
                      [](const Member& member) { return !member.over(); });
}

bool MemberRoster::AnyAlive(Role role) const {
  MutexLock lock(&state_->mu);
  return state_->membership.AnyAlive(role);
}

v1::MemberList MemberRoster::MemberList() const {
  MutexLock lock(&state_->mu);
  v1::MemberList list;
  list.set_epoch(state_->membership.epoch());
  for (const Member& member : state_->membership.Members()) {
    if (member.over()) continue;
    v1::MemberList::Member* const entry = list.add_members();
    *entry->mutable_task() = TaskToProto(member.task);
    entry->set_incarnation(member.incarnation);
    entry->set_membership_secret(member.secret);
  }
  return list;
}

uint64_t MemberRoster::epoch() const {
  MutexLock lock(&state_->mu);
  return state_->membership.epoch();
}

std::vector<uint64_t> MemberRoster::TakeEnded() {
  MutexLock lock(&state_->mu);
  return std::exchange(state_->newly_ended, {});
}

void MemberRoster::HandOn(absl::Span<const uint64_t> incarnations) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value()) return;
  int64_t tickets = 0;
  for (const uint64_t incarnation : incarnations) {
    tickets += state_->training->work().Release(incarnation);
  }
  if (tickets > 0) LogInfo(tickets, " steps go to others");
  state_->WakeAll();
}

}  // namespace keelson
