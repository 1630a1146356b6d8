// One lock guards membership, ledger, rounds and loss curve, because most decisions span them: when
// a membership ends, for example, its work may be handed on only after the servers refuse its
// pushes. The lock is never held across a call to a server. What needs one (ending memberships,
// committing a round, persisting the state) is taken out under the lock (TakeEnded, WaitForRound,
// PersistedState), done by a thread of the chief, and reported back (HandOn, RoundCommitted,
// NoteStored).
//
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

std::string NameOf(const Member& member) {
  return absl::StrCat(member.task.ToString(), " (", member.peer, ")");
}

// How often a member that waits renews its lease.
absl::Duration RenewalOf(const Coordinator::Options& options) {
  return std::min(options.lease, options.takeover_after) / 2;
}

void LogEnd(const Member& member, absl::Duration lease, absl::Duration now) {
  const std::string name = NameOf(member);
  if (member.state == Member::kLost) {
    const bool silent = now - member.last_heard >= lease;
    LogWarning("lost ", name,
               silent ? absl::StrCat(": not heard of for ", absl::FormatDuration(lease)) : "");
  } else if (member.state == Member::kReplaced) {
    LogWarning(name, " was replaced by a new process");
  } else {
    LogInfo(member.task.ToString(), " left");
  }
}

}  // namespace

Coordinator::Coordinator(const Options& options, const Clock* clock)
    : options_(options),
      clock_(clock),
      membership_(clock, options.lease, std::min(options.takeover_after, options.lease)),
      stalls_(clock),
      requests_({options.work_per_lease, options.max_tickets_per_lease}),
      parked_(RenewalOf(options)),
      first_attempt_(FirstAttempt(clock)) {}

absl::StatusOr<std::vector<uint64_t>> Coordinator::Register(Task task, const MembershipId& id,
                                                            uint64_t config_hash, std::string peer,
                                                            absl::Span<const HeldLease> held,
                                                            std::string device, uint64_t told_epoch,
                                                            absl::Duration step_bound) {
  if (config_hash != options_.config_hash) {
    const absl::Status mismatch = ConfigMismatch(options_.config_hash, config_hash,
                                                 absl::StrCat(task.ToString(), " (", peer, ")"));
    LogError("refused: ", mismatch.message());
    return mismatch;
  }
  const uint64_t incarnation = id.incarnation;
  MutexLock lock(&mu_);
  const bool returns = !held.empty() || told_epoch != 0;
  if (returns && phase_ == JobPhase::kWaitingForServers) {
    return absl::UnavailableError("the chief does not know yet how the job goes on; ask again");
  }
  const Member* const known = membership_.Find(task);
  const bool joins =
      known == nullptr || known->incarnation != incarnation || known->state != Member::kAlive;
  const absl::Status registered =
      membership_.Register(task, id, peer, std::move(device), told_epoch);
  NoticeEnds();
  RETURN_IF_ERROR(registered);
  if (task.role == Role::kWorker) stalls_.Join(incarnation, step_bound);
  std::vector<uint64_t> kept = ClaimLeases(task, incarnation, held);
  if (joins) {
    LogInfo(task.ToString(), " joined (", peer, ")",
            held.empty() ? "" : absl::StrCat(" with ", kept.size(), " work leases"));
    RequestPersistence();
  }
  WakeAll();
  return kept;
}

std::vector<uint64_t> Coordinator::ClaimLeases(Task task, uint64_t incarnation,
                                               absl::Span<const HeldLease> held) {
  std::vector<uint64_t> kept;
  if (!training_.has_value()) return kept;
  std::vector<uint64_t> superseded;
  for (const HeldLease& lease : held) {
    if (training_->work().Claim(incarnation, lease, resumed_, &superseded))
      kept.push_back(lease.id);
  }
  const int64_t unheard_of = training_->work().ReleaseUnconfirmed(incarnation);
  if (unheard_of > 0) {
    LogInfo(unheard_of, " steps never reached ", task.ToString(), " and go to others");
  }
  for (const uint64_t loser : superseded) membership_.Lose(loser);
  NoticeEnds();
  return kept;
}

absl::StatusOr<ModelLocation> Coordinator::WaitForModel(Task task, const MembershipId& id,
                                                        absl::Duration max_wait) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + max_wait;
  while (true) {
    std::optional<ModelAnswer> answer = TryModel(task, id, /*last=*/clock_->Monotonic() >= until);
    if (answer.has_value()) return *std::move(answer);
    WaitAsMember(until);
  }
}

std::optional<Coordinator::RequestId> Coordinator::RequestModel(
    Task task, const MembershipId& id, absl::Duration max_wait,
    std::function<void(ModelAnswer)> done) {
  std::optional<ModelAnswer> answer;
  {
    MutexLock lock(&mu_);
    answer = TryModel(task, id, /*last=*/max_wait <= absl::ZeroDuration());
    if (!answer.has_value()) {
      return Park(ParkedRequests::Kind::kModel, id.incarnation, max_wait,
                  [this, task, id, done = std::move(done)](bool last)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) -> ParkedRequests::Answer {
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
  const absl::Status alive = membership_.Heartbeat(task, id);
  if (!alive.ok()) return alive;
  if (phase_ == JobPhase::kFailed) {
    return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", error_));
  }
  if (model_.has_value()) return *model_;
  if (!last) return std::nullopt;
  return absl::DeadlineExceededError("the servers do not hold the model yet");
}

absl::Status Coordinator::Heartbeat(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&mu_);
  return AcceptReport(task, id, report);
}

absl::Status Coordinator::AcceptReport(Task task, const MembershipId& id,
                                       const WorkerReport& report) {
  RETURN_IF_ERROR(membership_.Heartbeat(task, id));
  if (!training_.has_value()) return absl::OkStatus();
  const std::optional<Round> round = training_->work().OpenRound();
  const absl::StatusOr<int64_t> steps = training_->Apply(task, id.incarnation, report);
  if (steps.ok()) stalls_.NoteSteps(id.incarnation, *steps);
  // A gradient that has arrived frees no ticket of the round that it is for.
  const bool same_round = round.has_value() && training_->work().OpenRound() == round;
  WakeAfterReport(/*may_free_work=*/!same_round &&
                  !(report.leases.empty() && report.refused.empty()));
  return steps.status();
}

absl::StatusOr<std::optional<WorkLease>> Coordinator::AcquireWork(Task task, const MembershipId& id,
                                                                  const WorkerReport& report,
                                                                  absl::Duration max_wait,
                                                                  uint64_t sequence) {
  const WorkRequest request = {task, id, sequence};
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(BeginRequest(request, report));
  const absl::Duration until = clock_->Monotonic() + max_wait;
  while (true) {
    std::optional<WorkAnswer> answer = TryWork(request, /*last=*/clock_->Monotonic() >= until);
    if (answer.has_value()) return *std::move(answer);
    requests_.BeginWait(id.incarnation);
    WaitAsMember(until);
    requests_.EndWait(id.incarnation);
  }
}

std::optional<Coordinator::RequestId> Coordinator::RequestWork(
    Task task, const MembershipId& id, const WorkerReport& report, absl::Duration max_wait,
    uint64_t sequence, std::function<void(WorkAnswer)> done) {
  const WorkRequest request = {task, id, sequence};
  std::optional<WorkAnswer> answer;
  {
    MutexLock lock(&mu_);
    const absl::Status begun = BeginRequest(request, report);
    answer = begun.ok() ? TryWork(request, /*last=*/max_wait <= absl::ZeroDuration()) : begun;
    if (!answer.has_value()) {
      return Park(ParkedRequests::Kind::kWork, id.incarnation, max_wait,
                  [this, request, done = std::move(done)](bool last)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) -> ParkedRequests::Answer {
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
  RETURN_IF_ERROR(membership_.Heartbeat(request.task, request.id));
  const bool repeated = requests_.Came(request.id.incarnation, request.sequence);
  RETURN_IF_ERROR(AcceptReport(request.task, request.id,
                               repeated ? WorkerReport{report.leases, report.losses} : report));
  if (!requests_.Note(request.id.incarnation, request.sequence)) return absl::OkStatus();
  // An older request of this incarnation that waits is to end.
  if (requests_.AnyWaits(request.id.incarnation)) members_changed_.NotifyAll();
  if (parked_.MakeDue(ParkedRequests::Kind::kWork, request.id.incarnation))
    requests_due_.NotifyAll();
  return absl::OkStatus();
}

std::optional<Coordinator::WorkAnswer> Coordinator::TryWork(const WorkRequest& request, bool last) {
  const absl::Status alive = membership_.Heartbeat(request.task, request.id);
  if (!alive.ok()) return alive;
  if (requests_.Overtaken(request.id.incarnation, request.sequence))
    return WorkAnswer(std::nullopt);
  if (phase_ > JobPhase::kFinishing) return WorkAnswer(std::nullopt);
  std::optional<WorkLease> lease = requests_.Granted(request.id.incarnation, request.sequence);
  if (!lease.has_value()) lease = GrantLease(request);
  if (lease.has_value() || last) return WorkAnswer(std::move(lease));
  return std::nullopt;
}

Coordinator::RequestId Coordinator::Park(ParkedRequests::Kind kind, uint64_t incarnation,
                                         absl::Duration max_wait, ParkedRequests::Attempt attempt) {
  const absl::Duration before = parked_.NextDue();
  const absl::Duration now = clock_->Monotonic();
  const RequestId id = parked_.Park(kind, incarnation, now, now + max_wait, std::move(attempt));
  if (parked_.NextDue() < before) requests_due_.NotifyAll();
  return id;
}

bool Coordinator::Withdraw(RequestId id) {
  MutexLock lock(&mu_);
  return parked_.Withdraw(id);
}

void Coordinator::AnswerWaiting(const StopSignal& stop) {
  const StopCallback wake(&stop, [this] {
    MutexLock lock(&mu_);
    requests_due_.NotifyAll();
  });
  while (true) {
    std::vector<ParkedRequests::Answer> answers;
    {
      MutexLock lock(&mu_);
      // With the lock, which the callback takes: otherwise its notification comes before the wait.
      if (stop.raised()) return;
      const absl::Duration due = parked_.NextDue();
      if (due > clock_->Monotonic()) {
        clock_->WaitUntil(&mu_, &requests_due_, due);
      } else {
        answers = parked_.TryDue(clock_->Monotonic());
      }
    }
    for (const ParkedRequests::Answer& answer : answers) answer();
  }
}

std::optional<WorkLease> Coordinator::GrantLease(const WorkRequest& request) {
  if (!training_.has_value() || WorkersAway()) return std::nullopt;
  const WorkLedger& ledger = training_->ledger();
  const int64_t left = ledger.options().max_steps - ledger.completed_steps();
  const absl::Duration now = clock_->Monotonic();
  const int64_t tickets = requests_.TicketsFor(request.id.incarnation, left, now);
  std::optional<WorkLease> lease =
      training_->work().Grant(request.id.incarnation, tickets, membership_.NumAlive(Role::kWorker));
  if (lease.has_value()) requests_.Grant(request.id.incarnation, request.sequence, *lease, now);
  return lease;
}

absl::StatusOr<bool> Coordinator::Admit(Task task, const MembershipId& id, uint64_t lease_id,
                                        int64_t step, uint32_t attempt) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(membership_.Heartbeat(task, id));
  return training_.has_value() && training_->work().Admit(id.incarnation, lease_id, step, attempt);
}

absl::Status Coordinator::Leave(Task task, const MembershipId& id, const WorkerReport& report) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(AcceptReport(task, id, report));
  RETURN_IF_ERROR(membership_.Leave(task, id));
  NoticeEnds();
  return absl::OkStatus();
}

absl::Status Coordinator::EndTraining(std::string reason) {
  MutexLock lock(&mu_);
  if (training_.has_value() && !training_->work().end_reason().empty()) return absl::OkStatus();
  if (!training_.has_value() || phase_ != JobPhase::kTraining || Trained()) {
    return absl::FailedPreconditionError("end of training: the job does not train");
  }
  const WorkLedger& ledger = training_->ledger();
  LogInfo("training is to end early, after ", ledger.completed_steps(), " of ",
          ledger.options().max_steps, " steps: ", reason);
  training_->work().EndEarly(std::move(reason));
  RequestPersistence();
  WakeAll();
  return absl::OkStatus();
}

void Coordinator::AcknowledgeEvaluation(int64_t step, uint64_t snapshot_id,
                                        const std::map<std::string, double>& metrics) {
  MutexLock lock(&mu_);
  if (snapshots_.Acknowledge(step, snapshot_id, metrics)) changed_.NotifyAll();
}

void Coordinator::StartTraining(ModelLocation model, WorkLedger ledger) {
  MutexLock lock(&mu_);
  BeginTraining(std::move(model), std::move(ledger));
}

void Coordinator::BeginTraining(ModelLocation model, WorkLedger ledger) {
  model_ = std::move(model);
  const Training::Options options = {options_.config_hash, options_.mode, options_.loss_interval,
                                     options_.max_loss};
  training_.emplace(options, std::move(ledger), first_attempt_);
  phase_ = JobPhase::kTraining;
  RequestPersistence();
  WakeAll();
}

std::optional<Coordinator::Round> Coordinator::WaitForRound(absl::Duration max_wait,
                                                            const StopSignal* stop) {
  const StopCallback wake(stop, [this] { Wake(); });
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + max_wait;
  while (true) {
    if (training_.has_value() && training_->work().StagedRound().has_value())
      return training_->work().StagedRound();
    if (clock_->Monotonic() >= until || (stop != nullptr && stop->raised())) return std::nullopt;
    WaitUntil(until);
  }
}

void Coordinator::RoundCommitted(const Round& round) {
  MutexLock lock(&mu_);
  if (training_.has_value() && training_->work().RoundCommitted(round)) WakeAll();
}

void Coordinator::RoundFailed(const Round& round) {
  MutexLock lock(&mu_);
  if (!training_.has_value() || !training_->work().RoundFailed(round)) return;
  LogWarning("step ", round.step, " is tried again: a server has lost its gradients");
  WakeAll();
}

void Coordinator::NoteForeignCommit(int64_t newest) {
  MutexLock lock(&mu_);
  if (!training_.has_value() || !training_->work().NoteForeignCommit(newest)) return;
  LogWarning("step ", newest, " was committed for an earlier chief; servers may lack it");
  WakeAll();
}

absl::Status Coordinator::SetMode(const ConsistencyMode& mode) {
  MutexLock lock(&mu_);
  if (!training_.has_value() || phase_ != JobPhase::kTraining) {
    return absl::FailedPreconditionError("consistency mode: the job does not train");
  }
  LogInfo("consistency mode: from ", training_->work().mode().ToString(), " to ", mode.ToString());
  training_->work().SetMode(mode);
  RequestPersistence();
  WakeAll();
  return absl::OkStatus();
}

ConsistencyMode Coordinator::mode() const {
  MutexLock lock(&mu_);
  return training_.has_value() ? training_->work().mode() : options_.mode;
}

void Coordinator::SetPhase(JobPhase phase) {
  MutexLock lock(&mu_);
  phase_ = phase;
  WakeAll();
}

void Coordinator::NameSnapshot(int64_t step, uint64_t snapshot_id) {
  MutexLock lock(&mu_);
  snapshots_.Name(step, snapshot_id);
}

void Coordinator::SetSnapshotStep(int64_t step) {
  MutexLock lock(&mu_);
  snapshots_.SetNewest(step);
}

void Coordinator::SetFigures(const v1::TrainingFigures& newest) {
  MutexLock lock(&mu_);
  newest_ = newest;
}

void Coordinator::Fail(const absl::Status& error) {
  MutexLock lock(&mu_);
  phase_ = JobPhase::kFailed;
  error_ = std::string(error.message());
  WakeAll();
}

void Coordinator::ExpireLeases() {
  MutexLock lock(&mu_);
  membership_.ExpireLeases();
  LoseStalled();
  NoticeEnds();
}

void Coordinator::LoseStalled() {
  if (!training_.has_value()) return;
  for (const StallWatch::Stalled& stalled : stalls_.Look(training_->work().Owing())) {
    const Member* const member = membership_.FindPresent(stalled.incarnation);
    if (member == nullptr) continue;
    LogWarning(NameOf(*member), " sends heartbeats, but has completed no step for ",
               absl::FormatDuration(stalled.since), ", expected one within ",
               absl::FormatDuration(stalled.bound), "; others get its work");
    membership_.Lose(stalled.incarnation);
  }
}

void Coordinator::ExtendLeases(absl::Duration gap) {
  MutexLock lock(&mu_);
  membership_.ExtendLeases(gap);
  stalls_.Excuse();
}

void Coordinator::ExcuseSteps() {
  MutexLock lock(&mu_);
  stalls_.Excuse();
}

void Coordinator::NoticeEnds() {
  for (const Member& member : membership_.TakeEnded()) {
    LogEnd(member, options_.lease, clock_->Monotonic());
    requests_.Forget(member.incarnation);
    stalls_.Forget(member.incarnation);
    newly_ended_.push_back(member.incarnation);
    if (training_.has_value()) {
      training_->work().Forget(member.incarnation);
      training_->work().Touch();
    }
    WakeAll();
  }
}

bool Coordinator::Trained() const {
  return training_.has_value() && training_->Done(WorkersAway());
}

bool Coordinator::WorkersAway() const { return membership_.AnyAway(Role::kWorker); }

int64_t Coordinator::WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { Wake(); });
  MutexLock lock(&mu_);
  const auto awaited = awaited_steps_.insert(step);
  while (!training_->Reached(step, WorkersAway()) && clock_->Monotonic() < until &&
         !stop.raised()) {
    WaitUntil(until);
  }
  awaited_steps_.erase(awaited);
  return training_->ledger().completed_steps();
}

bool Coordinator::WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { Wake(); });
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + timeout;
  while (snapshots_.evaluated_step() < step) {
    if (clock_->Monotonic() >= until || stop.raised()) return false;
    WaitUntil(until);
  }
  return true;
}

bool Coordinator::PauseWork(absl::Duration timeout) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + timeout;
  training_->work().Pause();
  while (!training_->work().Idle()) {
    if (clock_->Monotonic() >= until) return false;
    WaitUntil(until);
  }
  return true;
}

void Coordinator::ResumeWork() {
  MutexLock lock(&mu_);
  training_->work().EndPause();
  WakeAll();
}

bool Coordinator::WaitUntilAlone(absl::Duration timeout) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + timeout;
  while (!EveryoneLeft()) {
    if (clock_->Monotonic() >= until) return false;
    WaitUntil(until);
  }
  return true;
}

bool Coordinator::EveryoneLeft() const {
  const std::vector<Member> members = membership_.Members();
  return std::none_of(members.begin(), members.end(),
                      [](const Member& member) { return !member.over(); });
}

void Coordinator::WaitUntil(absl::Duration until) { clock_->WaitUntil(&mu_, &changed_, until); }

void Coordinator::WaitAsMember(absl::Duration until) {
  clock_->WaitUntil(&mu_, &members_changed_,
                    std::min(until, clock_->Monotonic() + RenewalOf(options_)));
}

void Coordinator::Wake() {
  MutexLock lock(&mu_);
  changed_.NotifyAll();
}

void Coordinator::WakeMembers() {
  members_changed_.NotifyAll();
  if (parked_.empty()) return;
  parked_.MakeAllDue();
  requests_due_.NotifyAll();
}

void Coordinator::WakeAll() {
  changed_.NotifyAll();
  WakeMembers();
}

void Coordinator::WakeAfterReport(bool may_free_work) {
  const bool steps_reached =
      !awaited_steps_.empty() && training_->Reached(*awaited_steps_.begin(), WorkersAway());
  if (steps_reached || training_->work().Idle() || training_->work().StagedRound().has_value())
    changed_.NotifyAll();
  if (may_free_work) WakeMembers();
}

std::optional<LossCurve::Point> Coordinator::TakeLossPoint() {
  MutexLock lock(&mu_);
  return training_.has_value() ? training_->TakeLossPoint() : std::nullopt;
}

std::optional<LossCurve::Point> Coordinator::TakeLastLossPoint() {
  MutexLock lock(&mu_);
  return training_.has_value() ? training_->TakeLastLossPoint() : std::nullopt;
}

v1::JobState Coordinator::LedgerState() const {
  MutexLock lock(&mu_);
  v1::JobState state = training_->ToState();
  state.set_member_epoch(membership_.epoch());
  return state;
}

Coordinator::Status Coordinator::GetStatus() const {
  MutexLock lock(&mu_);
  Status status;
  status.phase = phase_;
  status.error = error_;
  status.snapshot_step = snapshots_.newest_step();
  status.mode = options_.mode;
  status.newest = newest_;
  status.evaluated_step = snapshots_.evaluated_step();
  status.evaluation = snapshots_.evaluation();
  status.members = membership_.Members();
  for (Member& member : status.members) member.secret = 0;
  if (training_.has_value()) training_->FillStatus(WorkersAway(), &status);
  return status;
}

JobPhase Coordinator::phase() const {
  MutexLock lock(&mu_);
  return phase_;
}

std::string Coordinator::error() const {
  MutexLock lock(&mu_);
  return error_;
}

bool Coordinator::AnyAlive(Role role) const {
  MutexLock lock(&mu_);
  return membership_.AnyAlive(role);
}

}  // namespace keelson
