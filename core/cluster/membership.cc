#include "core/cluster/membership.h"

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

absl::Status Unknown(Task task, uint64_t incarnation) {
  return absl::AbortedError(absl::StrCat(Name(task, incarnation, ""), " is unknown"));
}

absl::Status Replaced(Task task, uint64_t incarnation, const Member& by) {
  return absl::AbortedError(
      absl::StrCat(Name(task, incarnation, ""), " was replaced by ", Name(by)));
}

absl::Status Lost(const Member& member) {
  return absl::AbortedError(absl::StrCat(Name(member), " lost its lease"));
}

absl::Status Left(const Member& member) {
  return absl::AbortedError(absl::StrCat(Name(member), " has left"));
}

}  // namespace

absl::string_view MemberStateName(Member::State state) {
  switch (state) {
    case Member::kAlive:
      return "alive";
    case Member::kLost:
      return "lost";
    case Member::kLeft:
      return "left";
  }
  return "";
}

bool Membership::LeasePassed(const Member& member) const {
  return member.state == Member::kAlive && clock_->Monotonic() - member.last_heard >= lease_;
}

void Membership::MarkLost(Member* member) {
  member->state = Member::kLost;
  newly_lost_.push_back(*member);
}

void Membership::TakeOver(Entry* entry, uint64_t incarnation, std::string peer) {
  Member& member = entry->member;
  if (LeasePassed(member)) MarkLost(&member);
  entry->replaced.insert(member.incarnation);
  member.incarnation = incarnation;
  member.peer = std::move(peer);
  member.state = Member::kAlive;
  member.last_heard = clock_->Monotonic();
  ++member.restarts;
}

absl::Status Membership::Register(Task task, uint64_t incarnation, std::string peer) {
  const auto [it, is_new] = entries_.try_emplace(task);
  Entry& entry = it->second;
  Member& member = entry.member;
  if (is_new) {
    member = {task, incarnation, std::move(peer), Member::kAlive, clock_->Monotonic(), 0};
    return absl::OkStatus();
  }
  if (entry.replaced.contains(incarnation)) return Replaced(task, incarnation, member);
  if (member.incarnation != incarnation) {
    if (member.state == Member::kAlive && !LeasePassed(member)) return TaskIsTaken(member, peer);
    TakeOver(&entry, incarnation, std::move(peer));
    return absl::OkStatus();
  }
  if (member.state == Member::kLeft) return Left(member);
  member.peer = std::move(peer);
  member.state = Member::kAlive;
  member.last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::FindCaller(Task task, uint64_t incarnation, Entry** entry) {
  const auto it = entries_.find(task);
  if (it == entries_.end()) return Unknown(task, incarnation);
  *entry = &it->second;
  if (it->second.member.incarnation == incarnation) return absl::OkStatus();
  if (!it->second.replaced.contains(incarnation)) return Unknown(task, incarnation);
  return Replaced(task, incarnation, it->second.member);
}

absl::Status Membership::Heartbeat(Task task, uint64_t incarnation) {
  Entry* entry = nullptr;
  RETURN_IF_ERROR(FindCaller(task, incarnation, &entry));
  Member& member = entry->member;
  if (member.state == Member::kLost) return Lost(member);
  if (member.state == Member::kLeft) return Left(member);
  member.last_heard = clock_->Monotonic();
  return absl::OkStatus();
}

absl::Status Membership::Leave(Task task, uint64_t incarnation) {
  Entry* entry = nullptr;
  RETURN_IF_ERROR(FindCaller(task, incarnation, &entry));
  entry->member.state = Member::kLeft;
  return absl::OkStatus();
}

std::vector<Member> Membership::ExpireLeases() {
  for (auto& [task, entry] : entries_) {
    if (LeasePassed(entry.member)) MarkLost(&entry.member);
  }
  return std::exchange(newly_lost_, {});
}

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  for (const auto& [task, entry] : entries_) members.push_back(entry.member);
  return members;
}

bool Membership::AnyAlive(Role role) const {
  for (const auto& [task, entry] : entries_) {
    if (task.role == role && entry.member.state == Member::kAlive) return true;
  }
  return false;
}

const Member* Membership::Find(Task task) const {
  const auto it = entries_.find(task);
  return it == entries_.end() ? nullptr : &it->second.member;
}

}  // namespace keelson
