// A request of a member that cannot be answered yet is tried again when something may have changed
// for it, and often enough to renew its lease: by the thread that waits in the call (AcquireWork,
// WaitForModel), or else by AnswerWaiting.
#include "chief/coordination/coordinator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

// The first attempt number is the seconds since 2020, so a later chief's attempts are greater than
// those of an earlier one.
uint32_t FirstAttempt(const Clock* clock) {
  const absl::Duration since = clock->Now() - absl::FromUnixSeconds(1'577'836'800);
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Seconds(since), 1, std::numeric_limits<int32_t>::max()));
}

}  // namespace

Coordinator::Coordinator(const Options& options, const Clock* clock)
    : state_(std::make_unique<CoordinatorState>(options, clock)),
      first_attempt_(FirstAttempt(clock)) {}

absl::StatusOr<std::vector<uint64_t>> Coordinator::Register(Task task, const MembershipId& id,
                                                            uint64_t config_hash, std::string peer,
                                                            absl::Span<const HeldLease> held,
                                                            std::string device, uint64_t told_epoch,
                                                            absl::Duration step_bound) {
  if (config_hash != state_->options.config_hash) {
    const absl::Status mismatch = ConfigMismatch(state_->options.config_hash, config_hash,
                                                 absl::StrCat(task.ToString(), " (", peer, ")"));
    LogError("refused: ", mismatch.message());
    return mismatch;
  }
  const uint64_t incarnation = id.incarnation;
  MutexLock lock(&state_->mu);
  const bool returns = !held.empty() || told_epoch != 0;
  if (returns && state_->phase == JobPhase::kWaitingForServers) {
    return absl::UnavailableError("the chief does not know yet how the job goes on; ask again");
  }
  const Member* const known = state_->membership.Find(task);
  const bool joins =
      known == nullptr || known->incarnation != incarnation || known->state != Member::kAlive;
  const absl::Status registered =
      state_->membership.Register(task, id, peer, std::move(device), told_epoch);
  state_->NoticeEnds();
  RETURN_IF_ERROR(registered);
  if (task.role == Role::kWorker) state_->stalls.Join(incarnation, step_bound);
  std::vector<uint64_t> kept = state_->ClaimLeases(task, incarnation, held);
  if (joins) {
    LogInfo(task.ToString(), " joined (", peer, ")",
            held.empty() ? "" : absl::StrCat(" with ", kept.size(), " work leases"));
    state_->RequestPersistence();
  }
  state_->WakeAll();
  return kept;
}

absl::StatusOr<ModelLocation> Coordinator::WaitForModel(Task task, const MembershipId& id,
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

std::optional<Coordinator::RequestId> Coordinator::RequestModel(
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

std::optional<Coordinator::ModelAnswer> Coordinator::TryModel(Task task, const MembershipId& id,
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

absl::Status Coordinator::Heartbeat(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&state_->mu);
  return state_->AcceptReport(task, id, report);
}

absl::StatusOr<std::optional<WorkLease>> Coordinator::AcquireWork(Task task, const MembershipId& id,
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

std::optional<Coordinator::RequestId> Coordinator::RequestWork(
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

absl::Status Coordinator::BeginRequest(const WorkRequest& request, const WorkerReport& report) {
  RETURN_IF_ERROR(state_->membership.Heartbeat(request.task, request.id));
  const bool repeated = state_->requests.Came(request.id.incarnation, request.sequence);
  RETURN_IF_ERROR(state_->AcceptReport(
      request.task, request.id, repeated ? WorkerReport{report.leases, report.losses} : report));
  if (!state_->requests.Note(request.id.incarnation, request.sequence)) return absl::OkStatus();
  // An older request of this incarnation that waits is to end.
  if (state_->requests.AnyWaits(request.id.incarnation)) state_->members_changed.NotifyAll();
  if (state_->parked.MakeDue(ParkedRequests::Kind::kWork, request.id.incarnation))
    state_->requests_due.NotifyAll();
  return absl::OkStatus();
}

std::optional<Coordinator::WorkAnswer> Coordinator::TryWork(const WorkRequest& request, bool last) {
  const absl::Status alive = state_->membership.Heartbeat(request.task, request.id);
  if (!alive.ok()) return alive;
  if (state_->requests.Overtaken(request.id.incarnation, request.sequence))
    return WorkAnswer(std::nullopt);
  if (state_->phase > JobPhase::kFinishing) return WorkAnswer(std::nullopt);
  std::optional<WorkLease> lease =
      state_->requests.Granted(request.id.incarnation, request.sequence);
  if (!lease.has_value()) lease = GrantLease(request);
  if (lease.has_value() || last) return WorkAnswer(std::move(lease));
  return std::nullopt;
}

Coordinator::RequestId Coordinator::Park(ParkedRequests::Kind kind, uint64_t incarnation,
                                         absl::Duration max_wait, ParkedRequests::Attempt attempt) {
  const absl::Duration before = state_->parked.NextDue();
  const absl::Duration now = state_->clock->Monotonic();
  const RequestId id =
      state_->parked.Park(kind, incarnation, now, now + max_wait, std::move(attempt));
  if (state_->parked.NextDue() < before) state_->requests_due.NotifyAll();
  return id;
}

bool Coordinator::Withdraw(RequestId id) {
  MutexLock lock(&state_->mu);
  return state_->parked.Withdraw(id);
}

void Coordinator::AnswerWaiting(const StopSignal& stop) {
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

std::optional<WorkLease> Coordinator::GrantLease(const WorkRequest& request) {
  if (!state_->training.has_value() || state_->WorkersAway()) return std::nullopt;
  const WorkLedger& ledger = state_->training->ledger();
  const int64_t left = ledger.options().max_steps - ledger.completed_steps();
  const absl::Duration now = state_->clock->Monotonic();
  const int64_t tickets = state_->requests.TicketsFor(request.id.incarnation, left, now);
  std::optional<WorkLease> lease = state_->training->work().Grant(
      request.id.incarnation, tickets, state_->membership.NumAlive(Role::kWorker));
  if (lease.has_value())
    state_->requests.Grant(request.id.incarnation, request.sequence, *lease, now);
  return lease;
}

absl::StatusOr<bool> Coordinator::Admit(Task task, const MembershipId& id, uint64_t lease_id,
                                        int64_t step, uint32_t attempt) {
  MutexLock lock(&state_->mu);
  RETURN_IF_ERROR(state_->membership.Heartbeat(task, id));
  return state_->training.has_value() &&
         state_->training->work().Admit(id.incarnation, lease_id, step, attempt);
}

absl::Status Coordinator::Leave(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&state_->mu);
  RETURN_IF_ERROR(state_->AcceptReport(task, id, report));
  RETURN_IF_ERROR(state_->membership.Leave(task, id));
  state_->NoticeEnds();
  return absl::OkStatus();
}

absl::Status Coordinator::EndTraining(std::string reason) {
  MutexLock lock(&state_->mu);
  if (state_->training.has_value() && !state_->training->work().end_reason().empty())
    return absl::OkStatus();
  if (!state_->training.has_value() || state_->phase != JobPhase::kTraining || state_->Trained()) {
    return absl::FailedPreconditionError("end of training: the job does not train");
  }
  const WorkLedger& ledger = state_->training->ledger();
  LogInfo("training is to end early, after ", ledger.completed_steps(), " of ",
          ledger.options().max_steps, " steps: ", reason);
  state_->training->work().EndEarly(std::move(reason));
  state_->RequestPersistence();
  state_->WakeAll();
  return absl::OkStatus();
}

void Coordinator::AcknowledgeEvaluation(int64_t step, uint64_t snapshot_id,
                                        const std::map<std::string, double>& metrics) {
  MutexLock lock(&state_->mu);
  if (state_->snapshots.Acknowledge(step, snapshot_id, metrics)) state_->changed.NotifyAll();
}

void Coordinator::StartTraining(ModelLocation model, WorkLedger ledger) {
  MutexLock lock(&state_->mu);
  BeginTraining(std::move(model), std::move(ledger));
}

void Coordinator::BeginTraining(ModelLocation model, WorkLedger ledger) {
  state_->model = std::move(model);
  const Training::Options options = {state_->options.config_hash, state_->options.mode,
                                     state_->options.loss_interval, state_->options.max_loss};
  state_->training.emplace(options, std::move(ledger), first_attempt_);
  state_->phase = JobPhase::kTraining;
  state_->RequestPersistence();
  state_->WakeAll();
}

std::optional<Coordinator::Round> Coordinator::WaitForRound(absl::Duration max_wait,
                                                            const StopSignal* stop) {
  const StopCallback wake(stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + max_wait;
  while (true) {
    if (state_->training.has_value() && state_->training->work().StagedRound().has_value())
      return state_->training->work().StagedRound();
    if (state_->clock->Monotonic() >= until || (stop != nullptr && stop->raised()))
      return std::nullopt;
    state_->WaitUntil(until);
  }
}

void Coordinator::RoundCommitted(const Round& round) {
  MutexLock lock(&state_->mu);
  if (state_->training.has_value() && state_->training->work().RoundCommitted(round))
    state_->WakeAll();
}

void Coordinator::RoundFailed(const Round& round) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || !state_->training->work().RoundFailed(round)) return;
  LogWarning("step ", round.step, " is tried again: a server has lost its gradients");
  state_->WakeAll();
}

void Coordinator::NoteForeignCommit(int64_t newest) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || !state_->training->work().NoteForeignCommit(newest)) return;
  LogWarning("step ", newest, " was committed for an earlier chief; servers may lack it");
  state_->WakeAll();
}

absl::Status Coordinator::SetMode(const ConsistencyMode& mode) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || state_->phase != JobPhase::kTraining) {
    return absl::FailedPreconditionError("consistency mode: the job does not train");
  }
  LogInfo("consistency mode: from ", state_->training->work().mode().ToString(), " to ",
          mode.ToString());
  state_->training->work().SetMode(mode);
  state_->RequestPersistence();
  state_->WakeAll();
  return absl::OkStatus();
}

ConsistencyMode Coordinator::mode() const {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->work().mode() : state_->options.mode;
}

void Coordinator::SetPhase(JobPhase phase) {
  MutexLock lock(&state_->mu);
  state_->phase = phase;
  state_->WakeAll();
}

void Coordinator::NameSnapshot(int64_t step, uint64_t snapshot_id) {
  MutexLock lock(&state_->mu);
  state_->snapshots.Name(step, snapshot_id);
}

void Coordinator::SetSnapshotStep(int64_t step) {
  MutexLock lock(&state_->mu);
  state_->snapshots.SetNewest(step);
}

void Coordinator::SetFigures(const v1::TrainingFigures& newest) {
  MutexLock lock(&state_->mu);
  newest_ = newest;
}

void Coordinator::Fail(const absl::Status& error) {
  MutexLock lock(&state_->mu);
  state_->phase = JobPhase::kFailed;
  state_->error = std::string(error.message());
  state_->WakeAll();
}

void Coordinator::ExpireLeases() {
  MutexLock lock(&state_->mu);
  state_->membership.ExpireLeases();
  LoseStalled();
  state_->NoticeEnds();
}

void Coordinator::LoseStalled() {
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

void Coordinator::ExtendLeases(absl::Duration gap) {
  MutexLock lock(&state_->mu);
  state_->membership.ExtendLeases(gap);
  state_->stalls.Excuse();
}

void Coordinator::ExcuseSteps() {
  MutexLock lock(&state_->mu);
  state_->stalls.Excuse();
}

int64_t Coordinator::WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const auto awaited = state_->awaited_steps.insert(step);
  while (!state_->training->Reached(step, state_->WorkersAway()) &&
         state_->clock->Monotonic() < until && !stop.raised()) {
    state_->WaitUntil(until);
  }
  state_->awaited_steps.erase(awaited);
  return state_->training->ledger().completed_steps();
}

bool Coordinator::WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  while (state_->snapshots.evaluated_step() < step) {
    if (state_->clock->Monotonic() >= until || stop.raised()) return false;
    state_->WaitUntil(until);
  }
  return true;
}

bool Coordinator::PauseWork(absl::Duration timeout) {
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  state_->training->work().Pause();
  while (!state_->training->work().Idle()) {
    if (state_->clock->Monotonic() >= until) return false;
    state_->WaitUntil(until);
  }
  return true;
}

void Coordinator::ResumeWork() {
  MutexLock lock(&state_->mu);
  state_->training->work().EndPause();
  state_->WakeAll();
}

bool Coordinator::WaitUntilAlone(absl::Duration timeout) {
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  while (!EveryoneLeft()) {
    if (state_->clock->Monotonic() >= until) return false;
    state_->WaitUntil(until);
  }
  return true;
}

bool Coordinator::EveryoneLeft() const {
  const std::vector<Member> members = state_->membership.Members();
  return std::none_of(members.begin(), members.end(),
                      [](const Member& member) { return !member.over(); });
}

std::optional<LossCurve::Point> Coordinator::TakeLossPoint() {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->TakeLossPoint() : std::nullopt;
}

std::optional<LossCurve::Point> Coordinator::TakeLastLossPoint() {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->TakeLastLossPoint() : std::nullopt;
}

v1::JobState Coordinator::LedgerState() const {
  MutexLock lock(&state_->mu);
  v1::JobState state = state_->training->ToState();
  state.set_member_epoch(state_->membership.epoch());
  return state;
}

Coordinator::Status Coordinator::GetStatus() const {
  MutexLock lock(&state_->mu);
  Status status;
  status.phase = state_->phase;
  status.error = state_->error;
  status.snapshot_step = state_->snapshots.newest_step();
  status.mode = state_->options.mode;
  status.newest = newest_;
  status.evaluated_step = state_->snapshots.evaluated_step();
  status.evaluation = state_->snapshots.evaluation();
  status.members = state_->membership.Members();
  for (Member& member : status.members) member.secret = 0;
  if (state_->training.has_value()) state_->training->FillStatus(state_->WorkersAway(), &status);
  return status;
}

JobPhase Coordinator::phase() const {
  MutexLock lock(&state_->mu);
  return state_->phase;
}

std::string Coordinator::error() const {
  MutexLock lock(&state_->mu);
  return state_->error;
}

bool Coordinator::AnyAlive(Role role) const {
  MutexLock lock(&state_->mu);
  return state_->membership.AnyAlive(role);
}

}  // namespace keelson
