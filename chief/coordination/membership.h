// Who takes part in the job: one member per task, kept alive by a lease that its calls renew.
// A membership is known by its id: the incarnation names it, and once that is over it never comes
// back; the secret shows that a caller is the member. Whoever shows an incarnation with another
// secret, or for another task, is no member.
//
//            Register             lease passes
//   (none) ────────────► alive ──────────────────► lost     ┐
//                       ▲  │ Leave                           │
//            Register   │  ├─────────────────────► left      ├ over: the incarnation never returns
//   Expect              │  │ another incarnation             │
//   ──────► away ───────┘  └─────────────────────► replaced  ┘
//
// A member of a predecessor is away until it registers here; its lease passes, and it is replaced,
// as if it were alive. A new incarnation of a task takes it at once when the old one's membership
// is over, and replaces a member that has sent nothing for `takeover_after`, which is less than the
// lease, and for four of the intervals at which heartbeats are wanted. So a process that was killed
// is replaced soon, while one whose messages are late keeps its place unless another claims it.
//
// Each join and each end begins an epoch. A member is told one in which it belongs to the job, and
// shows it when it registers again: so an incarnation that is unknown here is either new, or was a
// member, and its membership is over. Nobody needs to remember those that are over.
//
// A pure state machine: no threads, no I/O, time comes from the clock. Not thread-safe. It keeps
// one member per task.
#ifndef KEELSON_CHIEF_COORDINATION_MEMBERSHIP_H_
#define KEELSON_CHIEF_COORDINATION_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"

namespace keelson {

// One task and the membership that holds it, or held it last.
struct Member {
  enum State { kAway, kAlive, kLost, kLeft, kReplaced };

  Task task;
  uint64_t incarnation = 0;
  std::string peer;  // "host:pid", for messages
  State state = kAlive;
  absl::Duration last_heard;  // Clock::Monotonic() of the last call that renewed the lease
  int restarts = 0;           // memberships of this task before this one
  absl::Time since = {};      // Clock::Now() when it came into this state
  std::string device = {};    // what it computes on, for people; may be empty
  uint64_t secret = 0;        // MembershipId
  // When others noticed last that its process does not answer; Clock::Monotonic().
  absl::Duration suspected_at = -absl::InfiniteDuration();

  bool over() const { return state != kAway && state != kAlive; }
};

// "away", "alive", "lost", "left", "replaced"
absl::string_view MemberStateName(Member::State state);
// "worker-0 (host:pid)", for messages.
std::string NameOf(const Member& member);

class Membership {
 public:
  // The tasks that a job may have besides its servers and its chief.
  static constexpr size_t kMaxMembers = 4096;
  static constexpr absl::Duration kSuspectSilence = absl::Milliseconds(600);

  // A lease lasts until `lease` has passed since the member's last Register or Heartbeat. Only
  // ExpireLeases and the Register of another incarnation check whether it has passed: until then a
  // late Heartbeat still renews it. `clock` outlives this.
  Membership(const Clock* clock, absl::Duration lease, absl::Duration takeover_after)
      : clock_(clock), lease_(lease), takeover_after_(takeover_after) {}

  // OK: the task is the caller's; also when repeated. ALREADY_EXISTS: another incarnation holds the
  // task and was heard of within `takeover_after`; the text names it. Newcomers get this error, and
  // so does the incarnation that was replaced. ABORTED: this incarnation's membership is over (the
  // text says how), and its task is free; or the incarnation is another member's.
  // FAILED_PRECONDITION: there are kMaxMembers others. `told_epoch`: the epoch that the caller was
  // told as a member, here or by a predecessor; 0: none.
  absl::Status Register(Task task, const MembershipId& id, std::string peer,
                        std::string device = "", uint64_t told_epoch = 0);

  // The time between two heartbeats of a member that suffices: a millisecond for each member, so
  // that all of them together send a thousand a second, and at most an eighth of the lease.
  absl::Duration HeartbeatInterval() const;

  // Renews the lease. ABORTED: nobody has registered here with this id, or its membership is over;
  // nothing changes.
  absl::Status Heartbeat(Task task, const MembershipId& id);

  // Ends the membership; repeating it is harmless. ABORTED: unknown, away, lost or replaced.
  absl::Status Leave(Task task, const MembershipId& id);

  // Adds a predecessor's member as away; its lease begins now. If the task has been taken already,
  // its incarnation is either the same one, or is over as replaced. If its incarnation has been
  // shown here with another secret or for another task, both memberships are over.
  void Expect(const Member& member);
  // Continues after a predecessor whose epoch was at least this one; call it before an epoch is
  // told to anyone. The epoch becomes far greater, so that none of the predecessor's is used again,
  // not even one that nobody has seen.
  void RaiseEpoch(uint64_t at_least);
  // What the predecessor knew up to this epoch is known here (Expect): whoever was told a later one
  // of it, and is unknown, joined then, and may register. Without this call its members are over.
  void Inherit(uint64_t epoch) { inherited_epoch_ = epoch; }
  // Ends the membership of this incarnation, if it has one, as lost.
  void Lose(uint64_t incarnation);
  // Others have noticed that the task's process does not answer. If nothing more is heard of it
  // within kSuspectSilence, or four heartbeats, ExpireLeases ends its membership.
  void Suspect(Task task);

  // Nobody could renew a lease during the last `gap`: leases last longer by it.
  void ExtendLeases(absl::Duration gap);

  // Ends the memberships whose lease has passed, and those of the suspected that stay silent.
  void ExpireLeases();

  // The memberships that ended since the last call, each once, in order.
  std::vector<Member> TakeEnded();

  // Sorted by task.
  std::vector<Member> Members() const;
  bool AnyAlive(Role role) const { return NumAlive(role) > 0; }
  int NumAlive(Role role) const { return Count(role, Member::kAlive); }
  // The members that train.
  int NumTraining() const { return NumAlive(Role::kChief) + NumAlive(Role::kWorker); }
  // How many members that train come before the one of this incarnation, by their tasks.
  int PlaceOf(uint64_t incarnation) const;
  bool AnyAway(Role role) const { return Count(role, Member::kAway) > 0; }
  // Null when the task is unknown. Valid until the next non-const call.
  const Member* Find(Task task) const;
  // Null when no membership of this incarnation lasts. Valid until the next non-const call.
  const Member* FindPresent(uint64_t incarnation) const;
  // Rises whenever somebody begins or ceases to belong to the job; at least 1.
  uint64_t epoch() const { return epoch_; }

  absl::Duration lease() const { return lease_; }

 private:
  // Ends the memberships that show the incarnation of this one and are not it; whether there were
  // any.
  bool LoseImpostors(const Member& expected);
  int Count(Role role, Member::State state) const;
  // Whether the member is present and has sent nothing for `silence`.
  bool Silent(const Member& member, absl::Duration silence) const;
  // For so long a member has to be silent so that another one may replace it.
  absl::Duration TakeoverAfter() const;
  absl::Duration SuspectSilence() const;
  void Enter(Member* member, Member::State state);
  void End(Member* member, Member::State how);
  // Whether the incarnation was a member's and is not any more.
  bool IsOver(Task task, uint64_t incarnation, uint64_t told_epoch) const;
  absl::Status RegisterOver(Task task, uint64_t incarnation, absl::string_view peer) const;
  // ABORTED: the incarnation is known here with another secret or for another task.
  absl::Status CheckNotAnothers(Task task, const MembershipId& id, absl::string_view peer) const;
  // The error with which a call of this member is refused; OK when it is alive.
  absl::Status CheckAlive(Task task, const MembershipId& id) const;

  const Clock* const clock_;
  const absl::Duration lease_;
  const absl::Duration takeover_after_;
  std::map<Task, Member> members_;
  // The members by role and state, counted once for all queries until one enters another state.
  mutable std::optional<std::map<std::pair<Role, Member::State>, int>> counts_;
  uint64_t epoch_ = 1;
  uint64_t first_epoch_ = 1;  // of this chief
  std::optional<uint64_t> inherited_epoch_;
  std::vector<Member> ended_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_MEMBERSHIP_H_
