// Every call of a member shows its id, and one that is over is never admitted again, so a
// process that wakes up late cannot act in place of its successor (ADR 0011). A process that is
// only slow should not lose its place, so a late heartbeat still counts while no other process
// claims the task.
#include "chief/coordination/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// More epochs than a chief can have begun beyond those that it persisted or that a server has seen.
constexpr uint64_t kUnheardOfEpochs = 1'000'000;

constexpr absl::Duration kHeartbeatPerMember = absl::Milliseconds(1);

// Without its incarnation, which nobody else is to learn.
std::string Name(Task task, absl::string_view peer) {
  return absl::StrCat(task.ToString(), peer.empty() ? "" : absl::StrCat(" at ", peer));
}

std::string Name(const Member& member) { return Name(member.task, member.peer); }

MembershipId IdOf(const Member& member) { return {member.incarnation, member.secret}; }

absl::Status TaskIsTaken(const Member& holder, absl::string_view peer) {
  return absl::AlreadyExistsError(
      absl::StrCat(Name(holder.task, peer), ": the task is held by ", Name(holder)));
}

absl::Status TooManyMembers(Task task, absl::string_view peer) {
  return absl::FailedPreconditionError(absl::StrCat(Name(task, peer), ": expected at most ",
                                                    Membership::kMaxMembers,
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

std::string NameOf(const Member& member) {
  return absl::StrCat(member.task.ToString(), " (", member.peer, ")");
}

bool Membership::Silent(const Member& member, absl::Duration silence) const {
  return !member.over() && clock_->Monotonic() - member.last_heard >= silence;
}

absl::Duration Membership::HeartbeatInterval() const {
  return std::min(kHeartbeatPerMember * static_cast<int64_t>(members_.size()), lease_ / 8);
}

absl::Duration Membership::SuspectSilence() const {
  return std::min(lease_, std::max(kSuspectSilence, 4 * HeartbeatInterval()));
}

absl::Duration Membership::TakeoverAfter() const {
  return std::min(lease_, std::max(takeover_after_, 4 * HeartbeatInterval()));
}

void Membership::Enter(Member* member, Member::State state) {
  member->state = state;
  member->since = clock_->Now();
  counts_.reset();
}

void Membership::End(Member* member, Member::State how) {
  Enter(member, how);
  ++epoch_;
  ended_.push_back(*member);
}

void Membership::RaiseEpoch(uint64_t at_least) {
  epoch_ = std::max(epoch_, at_least + kUnheardOfEpochs);
  first_epoch_ = epoch_;
}

bool Membership::IsOver(Task task, uint64_t incarnation, uint64_t told_epoch) const {
  const Member* const holder = Find(task);
  if (holder != nullptr && holder->incarnation == incarnation) return holder->over();
  if (told_epoch == 0) return false;
  const bool told_here = told_epoch >= first_epoch_;
  return told_here || !inherited_epoch_.has_value() || told_epoch <= *inherited_epoch_;
}

absl::Status Membership::CheckNotAnothers(Task task, const MembershipId& id,
                                          absl::string_view peer) const {
  for (const auto& [holder, member] : members_) {
    const bool same = holder == task && IdOf(member) == id;
    if (member.incarnation != id.incarnation || same) continue;
    return absl::AbortedError(
        absl::StrCat(Name(task, peer), " shows the membership of ", Name(member)));
  }
  return absl::OkStatus();
}

absl::Status Membership::Register(Task task, const MembershipId& id, std::string peer,
                                  std::string device, uint64_t told_epoch) {
  RETURN_IF_ERROR(CheckNotAnothers(task, id, peer));
  const uint64_t incarnation = id.incarnation;
  if (IsOver(task, incarnation, told_epoch)) return RegisterOver(task, incarnation, peer);
  if (members_.size() >= kMaxMembers && Find(task) == nullptr) return TooManyMembers(task, peer);
  const auto [it, is_new] = members_.try_emplace(task);
  Member& member = it->second;
  if (is_new) {
    member.task = task;
  } else if (member.incarnation != incarnation) {
    if (Silent(member, lease_)) {
      End(&member, Member::kLost);
    } else if (Silent(member, TakeoverAfter())) {
      End(&member, Member::kReplaced);
    } else if (!member.over()) {
      return TaskIsTaken(member, peer);
    }
    ++member.restarts;
  }
  const bool joins = is_new || member.incarnation != incarnation || member.state != Member::kAlive;
  if (joins) Enter(&member, Member::kAlive);
  if (is_new || member.incarnation != incarnation) ++epoch_;
  member.incarnation = incarnation;
  member.secret = id.secret;
  member.peer = std::move(peer);
  member.device = std::move(device);
  member.last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::RegisterOver(Task task, uint64_t incarnation,
                                      absl::string_view peer) const {
  const Member* const holder = Find(task);
  if (holder == nullptr) return Over(Name(task, peer), "as an earlier chief knew");
  if (holder->incarnation == incarnation) return OverOf(*holder);
  if (!holder->over() && !Silent(*holder, TakeoverAfter())) return TaskIsTaken(*holder, peer);
  return Over(Name(task, peer), absl::StrCat("it was followed by ", Name(*holder)));
}

absl::Status Membership::CheckAlive(Task task, const MembershipId& id) const {
  const Member* const holder = Find(task);
  if (holder == nullptr || IdOf(*holder) != id) {
    return absl::AbortedError(
        absl::StrCat(task.ToString(), " is not known with this membership",
                     holder == nullptr ? "" : absl::StrCat("; it is held by ", Name(*holder))));
  }
  if (holder->over()) return OverOf(*holder);
  if (holder->state == Member::kAway) {
    return absl::AbortedError(
        absl::StrCat(Name(*holder), " has not registered since the chief's restart"));
  }
  return absl::OkStatus();
}

absl::Status Membership::Heartbeat(Task task, const MembershipId& id) {
  RETURN_IF_ERROR(CheckAlive(task, id));
  members_.at(task).last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::Leave(Task task, const MembershipId& id) {
  const Member* const holder = Find(task);
  const bool repeated = holder != nullptr && IdOf(*holder) == id && holder->state == Member::kLeft;
  if (repeated) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAlive(task, id));
  End(&members_.at(task), Member::kLeft);
  return absl::OkStatus();
}

bool Membership::LoseImpostors(const Member& expected) {
  bool any = false;
  for (auto& [task, member] : members_) {
    const bool same = task == expected.task && IdOf(member) == IdOf(expected);
    if (member.incarnation != expected.incarnation || same) continue;
    if (!member.over()) End(&member, Member::kLost);
    any = true;
  }
  return any;
}

void Membership::Expect(const Member& expected) {
  if (LoseImpostors(expected)) return;
  Member member = expected;
  Enter(&member, Member::kAway);
  member.last_heard = clock_->Monotonic();
  const auto [it, is_new] = members_.try_emplace(member.task, member);
  if (is_new) ++epoch_;
  if (is_new || it->second.incarnation == member.incarnation) return;
  End(&member, Member::kReplaced);
}

void Membership::Lose(uint64_t incarnation) {
  for (auto& [task, member] : members_) {
    if (member.incarnation == incarnation && !member.over()) End(&member, Member::kLost);
  }
}

void Membership::Suspect(Task task) {
  const auto member = members_.find(task);
  if (member != members_.end()) member->second.suspected_at = clock_->Monotonic();
}

void Membership::ExtendLeases(absl::Duration gap) {
  for (auto& [task, member] : members_) {
    if (!member.over()) member.last_heard = std::min(member.last_heard + gap, clock_->Monotonic());
  }
}

void Membership::ExpireLeases() {
  for (auto& [task, member] : members_) {
    const bool suspect = member.suspected_at > member.last_heard;
    if (Silent(member, suspect ? SuspectSilence() : lease_)) End(&member, Member::kLost);
  }
}

std::vector<Member> Membership::TakeEnded() { return std::exchange(ended_, {}); }

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  for (const auto& [task, member] : members_) members.push_back(member);
  return members;
}

int Membership::PlaceOf(uint64_t incarnation) const {
  int place = 0;
  for (const auto& [task, member] : members_) {
    if (!Trains(task.role) || member.state != Member::kAlive) continue;
    if (member.incarnation == incarnation) break;
    ++place;
  }
  return place;
}

int Membership::Count(Role role, Member::State state) const {
  if (!counts_.has_value()) {
    counts_.emplace();
    for (const auto& [task, member] : members_) ++(*counts_)[{task.role, member.state}];
  }
  const auto count = counts_->find({role, state});
  return count == counts_->end() ? 0 : count->second;
}

const Member* Membership::Find(Task task) const {
  const auto it = members_.find(task);
  return it == members_.end() ? nullptr : &it->second;
}

const Member* Membership::FindPresent(uint64_t incarnation) const {
  for (const auto& [task, member] : members_) {
    if (member.incarnation == incarnation && !member.over()) return &member;
  }
  return nullptr;
}

}  // namespace keelson
