// Every call of a member names its incarnation, and one that is over is never admitted again, so a
// process that wakes up late cannot act in place of its successor (ADR 0011). That is why retired
// incarnations are kept for the whole job (8 bytes each). A process that is only slow should not
// lose its place, so a late heartbeat still counts while no other process claims the task.
#include "chief/coordination/membership.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

std::string Name(Task task, uint64_t incarnation, absl::string_view peer) {
  return absl::StrCat(task.ToString(), " incarnation ", absl::Hex(incarnation, absl::kZeroPad16),
                      peer.empty() ? "" : absl::StrCat(" at ", peer));
}

std::string Name(const Member& member) {
  return Name(member.task, member.incarnation, member.peer);
}

absl::Status TaskIsTaken(const Member& holder, absl::string_view peer) {
  return absl::AlreadyExistsError(
      absl::StrCat(holder.task.ToString(), " at ", peer, ": the task is held by ", Name(holder)));
}

absl::Status TooManyMembers(Task task, absl::string_view peer) {
  return absl::FailedPreconditionError(absl::StrCat(task.ToString(), " at ", peer,
                                                    ": expected at most ", Membership::kMaxMembers,
                                                    " tasks in a job, found another one"));
}

absl::Status Over(const std::string& name, absl::string_view how) {
  return absl::AbortedError(absl::StrCat("membership of ", name, " is over: ", how));
}

absl::Status OverOf(const Member& member) {
  return Over(Name(member), member.state == Member::kLeft ? "it has left" : "its lease was lost");
}

}  // namespace

absl::string_view MemberStateName(Member::State state) {
  switch (state) {
    case Member::kAway:
      return "away";
    case Member::kAlive:
      return "alive";
    case Member::kLost:
      return "lost";
    case Member::kLeft:
      return "left";
    case Member::kReplaced:
      return "replaced";
  }
  return "";
}

bool Membership::Silent(const Member& member, absl::Duration silence) const {
  return !member.over() && clock_->Monotonic() - member.last_heard >= silence;
}

void Membership::Enter(Member* member, Member::State state) {
  member->state = state;
  member->since = clock_->Now();
}

void Membership::End(Member* member, Member::State how) {
  Enter(member, how);
  retired_.insert(member->incarnation);
  ended_.push_back(*member);
}

absl::Status Membership::Register(Task task, uint64_t incarnation, std::string peer,
                                  std::string device) {
  if (retired_.contains(incarnation)) return RegisterRetired(task, incarnation, peer);
  if (members_.size() >= kMaxMembers && Find(task) == nullptr) return TooManyMembers(task, peer);
  const auto [it, is_new] = members_.try_emplace(task);
  Member& member = it->second;
  if (is_new) {
    member.task = task;
  } else if (member.incarnation != incarnation) {
    if (Silent(member, lease_)) {
      End(&member, Member::kLost);
    } else if (Silent(member, takeover_after_)) {
      End(&member, Member::kReplaced);
    } else if (!member.over()) {
      return TaskIsTaken(member, peer);
    }
    ++member.restarts;
  }
  const bool joins = is_new || member.incarnation != incarnation || member.state != Member::kAlive;
  if (joins) Enter(&member, Member::kAlive);
  member.incarnation = incarnation;
  member.peer = std::move(peer);
  member.device = std::move(device);
  member.last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::RegisterRetired(Task task, uint64_t incarnation,
                                         absl::string_view peer) const {
  const Member* const holder = Find(task);
  if (holder != nullptr && !holder->over() && !Silent(*holder, takeover_after_)) {
    return TaskIsTaken(*holder, peer);
  }
  return CheckAlive(task, incarnation);
}

absl::Status Membership::CheckAlive(Task task, uint64_t incarnation) const {
  const Member* const holder = Find(task);
  if (holder == nullptr || holder->incarnation != incarnation) {
    const std::string name = Name(task, incarnation, "");
    if (!retired_.contains(incarnation)) {
      return absl::AbortedError(absl::StrCat(name, " is unknown"));
    }
    return Over(name, holder == nullptr ? "as an earlier chief knew"
                                        : absl::StrCat("it was followed by ", Name(*holder)));
  }
  if (holder->over()) return OverOf(*holder);
  if (holder->state == Member::kAway) {
    return absl::AbortedError(
        absl::StrCat(Name(*holder), " has not registered since the chief's restart"));
  }
  return absl::OkStatus();
}

absl::Status Membership::Heartbeat(Task task, uint64_t incarnation) {
  RETURN_IF_ERROR(CheckAlive(task, incarnation));
  members_.at(task).last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::Leave(Task task, uint64_t incarnation) {
  const Member* const holder = Find(task);
  const bool repeated =
      holder != nullptr && holder->incarnation == incarnation && holder->state == Member::kLeft;
  if (repeated) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAlive(task, incarnation));
  End(&members_.at(task), Member::kLeft);
  return absl::OkStatus();
}

void Membership::Expect(const Member& expected) {
  Member member = expected;
  Enter(&member, Member::kAway);
  member.last_heard = clock_->Monotonic();
  const auto [it, is_new] = members_.try_emplace(member.task, member);
  if (is_new || it->second.incarnation == member.incarnation) return;
  End(&member, Member::kReplaced);
}

void Membership::Retire(absl::Span<const uint64_t> incarnations) {
  for (const uint64_t incarnation : incarnations) {
    Lose(incarnation);
    retired_.insert(incarnation);
  }
}

void Membership::Lose(uint64_t incarnation) {
  for (auto& [task, member] : members_) {
    if (member.incarnation == incarnation && !member.over()) End(&member, Member::kLost);
  }
}

void Membership::ExpireLeases() {
  for (auto& [task, member] : members_) {
    if (Silent(member, lease_)) End(&member, Member::kLost);
  }
}

std::vector<Member> Membership::TakeEnded() { return std::exchange(ended_, {}); }

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  for (const auto& [task, member] : members_) members.push_back(member);
  return members;
}

int Membership::NumAlive(Role role) const {
  int count = 0;
  for (const auto& [task, member] : members_) {
    if (task.role == role && member.state == Member::kAlive) ++count;
  }
  return count;
}

bool Membership::AnyAway(Role role) const {
  for (const auto& [task, member] : members_) {
    if (task.role == role && member.state == Member::kAway) return true;
  }
  return false;
}

const Member* Membership::Find(Task task) const {
  const auto it = members_.find(task);
  return it == members_.end() ? nullptr : &it->second;
}

}  // namespace keelson
