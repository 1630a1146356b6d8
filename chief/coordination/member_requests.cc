#include "chief/coordination/member_requests.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<ModelLocation> MemberRequests::WaitForModel(Task task, const MembershipId& id,
                                                           absl::Duration max_wait) {
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + max_wait;
  while (true) {
    std::optional<ModelAnswer> answer =
        TryModel(task, id, /*last=*/state_->clock->Monotonic() >= until);
    if (answer.has_value()) return *std::move(answer);
    state_->WaitAsMember(until);
  }
}

std::optional<MemberRequests::RequestId> MemberRequests::RequestModel(
    Task task, const MembershipId& id, absl::Duration max_wait,
    std::function<void(ModelAnswer)> done) {
  std::optional<ModelAnswer> answer;
  {
    MutexLock lock(&state_->mu);
    answer = TryModel(task, id, /*last=*/max_wait <= absl::ZeroDuration());
    if (!answer.has_value()) {
      return Park(ParkedRequests::Kind::kModel, id.incarnation, max_wait,
                  [this, task, id, done = std::move(done)](bool last)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) -> ParkedRequests::Answer {
                        std::optional<ModelAnswer> found = TryModel(task, id, last);
                        if (!found.has_value()) return nullptr;
                        return
                            [done, found = *std::move(found)]() mutable { done(std::move(found)); };
                      });
    }
  }
  done(*std::move(answer));
  return std::nullopt;
}

std::optional<MemberRequests::ModelAnswer> MemberRequests::TryModel(Task task,
                                                                    const MembershipId& id,
                                                                    bool last) {
  const absl::Status alive = state_->membership.Heartbeat(task, id);
  if (!alive.ok()) return alive;
  if (state_->phase == JobPhase::kFailed) {
    return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", state_->error));
  }
  if (state_->model.has_value()) return *state_->model;
  if (!last) return std::nullopt;
  return absl::DeadlineExceededError("the servers do not hold the model yet");
}

absl::StatusOr<std::optional<WorkLease>> MemberRequests::AcquireWork(Task task,
                                                                     const MembershipId& id,
                                                                     const WorkerReport& report,
                                                                     absl::Duration max_wait,
                                                                     uint64_t sequence) {
  const WorkRequest request = {task, id, sequence};
  MutexLock lock(&state_->mu);
  RETURN_IF_ERROR(BeginRequest(request, report));
  const absl::Duration until = state_->clock->Monotonic() + max_wait;
  while (true) {
    std::optional<WorkAnswer> answer =
        TryWork(request, /*last=*/state_->clock->Monotonic() >= until);
    if (answer.has_value()) return *std::move(answer);
    state_->requests.BeginWait(id.incarnation);
    state_->WaitAsMember(until);
    state_->requests.EndWait(id.incarnation);
  }
}

std::optional<MemberRequests::RequestId> MemberRequests::RequestWork(
    Task task, const MembershipId& id, const WorkerReport& report, absl::Duration max_wait,
    uint64_t sequence, std::function<void(WorkAnswer)> done) {
  const WorkRequest request = {task, id, sequence};
  std::optional<WorkAnswer> answer;
  {
    MutexLock lock(&state_->mu);
    const absl::Status begun = BeginRequest(request, report);
    answer = begun.ok() ? TryWork(request, /*last=*/max_wait <= absl::ZeroDuration()) : begun;
    if (!answer.has_value()) {
      return Park(ParkedRequests::Kind::kWork, id.incarnation, max_wait,
                  [this, request, done = std::move(done)](bool last)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) -> ParkedRequests::Answer {
                        std::optional<WorkAnswer> found = TryWork(request, last);
                        if (!found.has_value()) return nullptr;
                        return
                            [done, found = *std::move(found)]() mutable { done(std::move(found)); };
                      });
    }
  }
  done(*std::move(answer));
  return std::nullopt;
}

absl::Status MemberRequests::BeginRequest(const WorkRequest& request, const WorkerReport& report) {
  RETURN_IF_ERROR(state_->membership.Heartbeat(request.task, request.id));
  const bool repeated = state_->requests.Came(request.id.incarnation, request.sequence);
  RETURN_IF_ERROR(state_->AcceptReport(
      request.task, request.id, repeated ? WorkerReport{report.leases, report.losses} : report));
  if (!state_->requests.Note(request.id.incarnation, request.sequence)) return absl::OkStatus();
  // An older request of this incarnation that waits is to end.
  if (state_->requests.AnyWaits(request.id.incarnation)) state_->members_changed.NotifyAll();
  if (state_->parked.MakeDue(ParkedRequests::Kind::kWork, request.id.incarnation)) {
    state_->requests_due.NotifyAll();
  }
  return absl::OkStatus();
}

std::optional<MemberRequests::WorkAnswer> MemberRequests::TryWork(const WorkRequest& request,
                                                                  bool last) {
  const absl::Status alive = state_->membership.Heartbeat(request.task, request.id);
  if (!alive.ok()) return alive;
  if (state_->requests.Overtaken(request.id.incarnation, request.sequence)) {
    return WorkAnswer(std::nullopt);
  }
  if (state_->phase > JobPhase::kFinishing) return WorkAnswer(std::nullopt);
  std::optional<WorkLease> lease =
      state_->requests.Granted(request.id.incarnation, request.sequence);
  if (!lease.has_value()) lease = GrantLease(request);
  if (lease.has_value() || last) return WorkAnswer(std::move(lease));
  return std::nullopt;
}

MemberRequests::RequestId MemberRequests::Park(ParkedRequests::Kind kind, uint64_t incarnation,
                                               absl::Duration max_wait,
                                               ParkedRequests::Attempt attempt) {
  const absl::Duration before = state_->parked.NextDue();
  const absl::Duration now = state_->clock->Monotonic();
  const RequestId id =
      state_->parked.Park(kind, incarnation, now, now + max_wait, std::move(attempt));
  if (state_->parked.NextDue() < before) state_->requests_due.NotifyAll();
  return id;
}

bool MemberRequests::Withdraw(RequestId id) {
  MutexLock lock(&state_->mu);
  return state_->parked.Withdraw(id);
}

void MemberRequests::AnswerWaiting(const StopSignal& stop) {
  const StopCallback wake(&stop, [this] {
    MutexLock lock(&state_->mu);
    state_->requests_due.NotifyAll();
  });
  while (true) {
    std::vector<ParkedRequests::Answer> answers;
    {
      MutexLock lock(&state_->mu);
      // With the lock, which the callback takes: otherwise its notification comes before the wait.
      if (stop.raised()) return;
      const absl::Duration due = state_->parked.NextDue();
      if (due > state_->clock->Monotonic()) {
        state_->clock->WaitUntil(&state_->mu, &state_->requests_due, due);
      } else {
        answers = state_->parked.TryDue(state_->clock->Monotonic());
      }
    }
    for (const ParkedRequests::Answer& answer : answers) answer();
  }
}

bool MemberRequests::LacksWorkers() {
  state_->LogMissingWorkers();
  const WorkDispatcher& work = state_->training->work();
  if (work.OpenRound().has_value() || !work.end_reason().empty()) return false;
  return state_->MissingWorkers() > 0;
}

std::optional<WorkLease> MemberRequests::GrantLease(const WorkRequest& request) {
  if (!state_->training.has_value() || state_->WorkersAway() || LacksWorkers()) return std::nullopt;
  const WorkLedger& ledger = state_->training->ledger();
  const int64_t left = ledger.options().max_steps - ledger.completed_steps();
  const absl::Duration now = state_->clock->Monotonic();
  const int64_t tickets = state_->requests.TicketsFor(request.id.incarnation, left, now);
  const std::optional<int64_t> place =
      state_->options.deterministic_sum
          ? std::make_optional<int64_t>(state_->membership.PlaceOf(request.id.incarnation))
          : std::nullopt;
  std::optional<WorkLease> lease = state_->training->work().Grant(
      request.id.incarnation, tickets, state_->membership.NumTraining(), place);
  if (lease.has_value()) {
    state_->requests.Grant(request.id.incarnation, request.sequence, *lease, now);
  }
  return lease;
}

}  // namespace keelson
