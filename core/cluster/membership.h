// Who takes part in the job: one member per task, kept alive by a lease that its calls renew.
//
//            Register             lease passes             Register (same incarnation)
//   (none) ────────────► alive ──────────────────► lost ─────────────────────────────► alive
//                          │ Leave                   │ Leave
//                          └──────────► left ◄───────┘
// From lost and left, a new incarnation of the task may register and replaces the old one, which
// is refused from then on.
//
// A pure state machine: no threads, no I/O, time comes from the clock. Not thread-safe. It keeps
// one member per task, and 8 bytes per replaced incarnation.
#ifndef KEELSON_CORE_CLUSTER_MEMBERSHIP_H_
#define KEELSON_CORE_CLUSTER_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/cluster/task.h"

namespace keelson {

// One task and the process life that holds it, or held it last.
struct Member {
  enum State { kAlive, kLost, kLeft };

  Task task;
  uint64_t incarnation = 0;
  std::string peer;  // "host:pid", for messages
  State state = kAlive;
  absl::Duration last_heard;  // Clock::Monotonic() of the last call that renewed the lease
  int restarts = 0;           // incarnations of this task before this one
};

// "alive", "lost", "left"
absl::string_view MemberStateName(Member::State state);

class Membership {
 public:
  // A lease lasts until `lease` has passed since the member's last Register or Heartbeat. Whether
  // it has passed is looked at in ExpireLeases and Register only: until then a late Heartbeat still
  // renews it. `clock` must outlive this.
  Membership(const Clock* clock, absl::Duration lease) : clock_(clock), lease_(lease) {}

  // OK: the task is the caller's; also when repeated, and for a lost incarnation whose task nobody
  // took meanwhile.
  // ALREADY_EXISTS: another incarnation holds the task and its lease has not passed.
  // ABORTED: this incarnation was replaced, or has left.
  absl::Status Register(Task task, uint64_t incarnation, std::string peer);

  // Renews the lease. ABORTED: the incarnation is unknown, lost, left or replaced (the text says
  // which); nothing changes.
  absl::Status Heartbeat(Task task, uint64_t incarnation);

  // Ends the membership; repeating it is harmless. ABORTED: unknown or replaced.
  absl::Status Leave(Task task, uint64_t incarnation);

  // Marks as lost whose lease has passed. Returns the members lost since the last call, each once;
  // among them those that a Register found expired and replaced.
  std::vector<Member> ExpireLeases();

  // Sorted by task.
  std::vector<Member> Members() const;
  bool AnyAlive(Role role) const;
  // Null when the task never registered. Valid until the next non-const call.
  const Member* Find(Task task) const;

  absl::Duration lease() const { return lease_; }

 private:
  struct Entry {
    Member member;
    std::set<uint64_t> replaced;
  };

  bool LeasePassed(const Member& member) const;
  void MarkLost(Member* member);
  void TakeOver(Entry* entry, uint64_t incarnation, std::string peer);
  // The caller's own entry. ABORTED: unknown or replaced.
  absl::Status FindCaller(Task task, uint64_t incarnation, Entry** entry);

  const Clock* const clock_;
  const absl::Duration lease_;
  std::map<Task, Entry> entries_;
  std::vector<Member> newly_lost_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_MEMBERSHIP_H_
