#include "chief/coordination/coordinator_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// How often a member that waits renews its lease.
absl::Duration RenewalOf(const CoordinatorState::Options& options) {
  return std::min(options.lease, options.takeover_after) / 2;
}

void LogEnd(const Member& member, absl::Duration lease, absl::Duration now) {
  const std::string name = NameOf(member);
  if (member.state == Member::kLost) {
    const absl::Duration silence = now - member.last_heard;
    const bool silent = silence >= lease || member.suspected_at > member.last_heard;
    LogWarning("lost ", name,
               silent ? absl::StrCat(": not heard of for ",
                                     absl::FormatDuration(absl::Trunc(std::min(silence, lease),
                                                                      absl::Milliseconds(100))))
                      : "");
  } else if (member.state == Member::kReplaced) {
    LogWarning(name, " was replaced by a new process");
  } else {
    LogInfo(member.task.ToString(), " left");
  }
}

}  // namespace

CoordinatorState::CoordinatorState(const Options& options, const Clock* clock)
    : options(options),
      clock(clock),
      membership(clock, options.lease, std::min(options.takeover_after, options.lease)),
      stalls(clock),
      requests({options.work_per_lease, options.max_tickets_per_lease}),
      parked(RenewalOf(options)) {}

absl::Status CoordinatorState::AcceptReport(Task task, const MembershipId& id,
                                            const WorkerReport& report) {
  RETURN_IF_ERROR(membership.Heartbeat(task, id));
  if (!training.has_value()) return absl::OkStatus();
  const std::optional<SyncRounds::Round> round = training->work().OpenRound();
  const absl::StatusOr<int64_t> steps = training->Apply(task, id.incarnation, report);
  if (steps.ok()) stalls.NoteSteps(id.incarnation, *steps);
  // A gradient that has arrived frees no ticket of the round that it is for.
  const bool same_round = round.has_value() && training->work().OpenRound() == round;
  WakeAfterReport(/*may_free_work=*/!same_round &&
                  !(report.leases.empty() && report.refused.empty()));
  return steps.status();
}

std::vector<uint64_t> CoordinatorState::ClaimLeases(Task task, uint64_t incarnation,
                                                    absl::Span<const HeldLease> held) {
  std::vector<uint64_t> kept;
  if (!training.has_value()) return kept;
  std::vector<uint64_t> superseded;
  for (const HeldLease& lease : held) {
    if (training->work().Claim(incarnation, lease, resumed, &superseded)) kept.push_back(lease.id);
  }
  const int64_t unheard_of = training->work().ReleaseUnconfirmed(incarnation);
  if (unheard_of > 0) {
    LogInfo(unheard_of, " steps never reached ", task.ToString(), " and go to others");
  }
  for (const uint64_t loser : superseded) membership.Lose(loser);
  NoticeEnds();
  return kept;
}

void CoordinatorState::NoticeEnds() {
  for (const Member& member : membership.TakeEnded()) {
    LogEnd(member, options.lease, clock->Monotonic());
    requests.Forget(member.incarnation);
    stalls.Forget(member.incarnation);
    newly_ended.push_back(member.incarnation);
    if (training.has_value()) {
      training->work().Forget(member.incarnation);
      training->work().Touch();
    }
    WakeAll();
  }
}

void CoordinatorState::RequestPersistence() {
  if (!training.has_value()) return;
  training->work().Touch();
  versions.Request(training->ledger().version());
}

bool CoordinatorState::Trained() const {
  return training.has_value() && training->Done(WorkersAway());
}

bool CoordinatorState::WorkersAway() const { return membership.AnyAway(Role::kWorker); }

bool CoordinatorState::Idle() const { return training->work().Idle() && !WorkersAway(); }

int CoordinatorState::MissingWorkers() const {
  return std::max(0, options.min_workers - membership.NumTraining());
}

void CoordinatorState::LogMissingWorkers() {
  const bool lacks = MissingWorkers() > 0;
  if (lacks == lacks_workers) return;
  lacks_workers = lacks;
  const std::string found =
      absl::StrCat(membership.NumTraining(), " of at least ", options.min_workers, " tasks train");
  if (lacks) {
    LogWarning("no step is begun: ", found);
  } else {
    LogInfo("steps are begun again: ", found);
  }
}

void CoordinatorState::WaitUntil(absl::Duration until) { clock->WaitUntil(&mu, &changed, until); }

void CoordinatorState::WaitAsMember(absl::Duration until) {
  clock->WaitUntil(&mu, &members_changed, std::min(until, clock->Monotonic() + RenewalOf(options)));
}

void CoordinatorState::Wake() {
  MutexLock lock(&mu);
  changed.NotifyAll();
  round_staged.NotifyAll();
}

void CoordinatorState::WakeMembers() {
  members_changed.NotifyAll();
  if (parked.empty()) return;
  parked.MakeAllDue();
  requests_due.NotifyAll();
}

void CoordinatorState::WakeAll() {
  changed.NotifyAll();
  round_staged.NotifyAll();
  WakeMembers();
}

void CoordinatorState::WakeAfterSteps() {
  const bool steps_reached =
      !awaited_steps.empty() && training->Reached(*awaited_steps.begin(), WorkersAway());
  if (steps_reached || (awaiting_idle > 0 && Idle())) changed.NotifyAll();
}

void CoordinatorState::WakeAfterReport(bool may_free_work) {
  WakeAfterSteps();
  if (training->work().StagedRound().has_value()) round_staged.NotifyAll();
  if (may_free_work) WakeMembers();
}

}  // namespace keelson
