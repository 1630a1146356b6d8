#include "chief/coordinator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr absl::Duration kLongestWait = absl::Milliseconds(100);

}  // namespace

void WorkerReport::AddSums(const WorkerReport& other) {
  steps += other.steps;
  examples += other.examples;
  loss_sum += other.loss_sum;
  non_finite_losses += other.non_finite_losses;
  staleness_sum += other.staleness_sum;
  staleness_max = std::max(staleness_max, other.staleness_max);
  pull_seconds += other.pull_seconds;
  input_seconds += other.input_seconds;
  compute_seconds += other.compute_seconds;
  push_seconds += other.push_seconds;
  push_retries += other.push_retries;
  credit_wait_seconds += other.credit_wait_seconds;
  bytes_pushed += other.bytes_pushed;
  bytes_pulled += other.bytes_pulled;
}

Coordinator::Coordinator(const Options& options, const Clock* clock)
    : options_(options), clock_(clock), membership_(clock, options.lease) {}

absl::Status Coordinator::Register(Task task, uint64_t incarnation, uint64_t config_hash,
                                   std::string peer) {
  if (config_hash != options_.config_hash) {
    const absl::Status mismatch = ConfigMismatch(options_.config_hash, config_hash,
                                                 absl::StrCat(task.ToString(), " (", peer, ")"));
    LogError("refused: ", mismatch.message());
    return mismatch;
  }
  MutexLock lock(&mu_);
  const Member* known = membership_.Find(task);
  const bool joins =
      known == nullptr || known->incarnation != incarnation || known->state != Member::kAlive;
  RETURN_IF_ERROR(membership_.Register(task, incarnation, peer));
  if (joins) LogInfo(task.ToString(), " joined (", peer, ")");
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<ModelLocation> Coordinator::WaitForModel(Task task, uint64_t incarnation,
                                                        absl::Duration max_wait) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + max_wait;
  while (true) {
    RETURN_IF_ERROR(membership_.Heartbeat(task, incarnation));
    if (status_.phase == JobPhase::kFailed) {
      return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", status_.error));
    }
    if (model_.has_value()) return *model_;
    if (clock_->Monotonic() >= until) {
      return absl::DeadlineExceededError("the servers do not hold the model yet");
    }
    WaitBriefly(until);
  }
}

absl::Status Coordinator::Heartbeat(Task task, uint64_t incarnation, const WorkerReport& report) {
  MutexLock lock(&mu_);
  return AcceptReport(task, incarnation, report);
}

absl::Status Coordinator::AcceptReport(Task task, uint64_t incarnation,
                                       const WorkerReport& report) {
  RETURN_IF_ERROR(membership_.Heartbeat(task, incarnation));
  if (!ledger_.has_value()) return absl::OkStatus();
  for (const WorkerReport::LeaseProgress& lease : report.leases) {
    const absl::Status status = ledger_->Complete(incarnation, lease.lease_id, lease.completed);
    // A lease that was taken back: its steps belong to others now.
    if (!status.ok() && status.code() != absl::StatusCode::kAborted) return status;
  }
  for (const WorkerReport::StepLoss& loss : report.losses) losses_->Add(loss.step, loss.loss);
  status_.totals.AddSums(report);
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkLease>> Coordinator::AcquireWork(Task task, uint64_t incarnation,
                                                                  const WorkerReport& report,
                                                                  absl::Duration max_wait,
                                                                  uint64_t sequence) {
  MutexLock lock(&mu_);
  Requests& requests = requests_[incarnation];
  const bool repeated = sequence != 0 && sequence <= requests.newest;
  RETURN_IF_ERROR(AcceptReport(task, incarnation,
                               repeated ? WorkerReport{report.leases, report.losses} : report));
  requests.newest = std::max(requests.newest, sequence);
  const absl::Duration until = clock_->Monotonic() + max_wait;
  while (true) {
    RETURN_IF_ERROR(membership_.Heartbeat(task, incarnation));
    if (sequence < requests.newest) return std::nullopt;
    if (status_.phase > JobPhase::kTraining || (ledger_.has_value() && ledger_->Done())) {
      return std::nullopt;
    }
    if (sequence != 0 && sequence == requests.granted) return requests.lease;
    std::optional<WorkLease> lease = GrantLease(incarnation);
    if (lease.has_value()) {
      requests.granted = sequence;
      requests.lease = lease;
      return lease;
    }
    if (clock_->Monotonic() >= until) return std::nullopt;
    WaitBriefly(until);
  }
}

std::optional<WorkLease> Coordinator::GrantLease(uint64_t incarnation) {
  if (!ledger_.has_value()) return std::nullopt;
  std::optional<WorkLease> lease = ledger_->Acquire(incarnation, TicketsFor(incarnation));
  if (lease.has_value()) {
    paces_[incarnation] = {clock_->Monotonic(), static_cast<int64_t>(lease->tickets.size())};
  }
  return lease;
}

int64_t Coordinator::TicketsFor(uint64_t incarnation) {
  int64_t tickets = 1;
  const auto pace = paces_.find(incarnation);
  if (pace != paces_.end()) {
    const double took = absl::ToDoubleSeconds(clock_->Monotonic() - pace->second.granted_at);
    const double wanted = absl::ToDoubleSeconds(options_.work_per_lease);
    tickets = static_cast<int64_t>(static_cast<double>(pace->second.tickets) * wanted /
                                   std::max(took, 1e-3));
    // At most a doubling: the batcher asks ahead, so the first times measured are too short.
    tickets = std::min(tickets, pace->second.tickets * 2);
  }
  // Towards the end in small portions, so that all finish together.
  const auto workers = static_cast<int64_t>(std::max<size_t>(1, paces_.size()));
  const int64_t left = ledger_->options().max_steps - ledger_->completed_steps();
  return std::clamp<int64_t>(std::min(tickets, left / (2 * workers)), 1,
                             options_.max_tickets_per_lease);
}

absl::Status Coordinator::Leave(Task task, uint64_t incarnation, const WorkerReport& report) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(AcceptReport(task, incarnation, report));
  RETURN_IF_ERROR(membership_.Leave(task, incarnation));
  LogInfo(task.ToString(), " left");
  TakeBackWork(*membership_.Find(task));
  changed_.NotifyAll();
  return absl::OkStatus();
}

void Coordinator::AcknowledgeEvaluation(int64_t step,
                                        const std::map<std::string, double>& metrics) {
  MutexLock lock(&mu_);
  if (step < status_.evaluated_step) return;
  status_.evaluated_step = step;
  status_.evaluation = metrics;
  changed_.NotifyAll();
}

void Coordinator::StartTraining(ModelLocation model, WorkLedger ledger) {
  MutexLock lock(&mu_);
  model_ = std::move(model);
  ledger_.emplace(std::move(ledger));
  losses_.emplace(ledger_->completed_steps(), options_.loss_interval);
  status_.phase = JobPhase::kTraining;
  changed_.NotifyAll();
}

void Coordinator::SetPhase(JobPhase phase) {
  MutexLock lock(&mu_);
  status_.phase = phase;
  changed_.NotifyAll();
}

void Coordinator::SetSnapshotStep(int64_t step) {
  MutexLock lock(&mu_);
  status_.snapshot_step = step;
}

void Coordinator::SetFigures(const Figures& newest) {
  MutexLock lock(&mu_);
  status_.newest = newest;
}

void Coordinator::Fail(const absl::Status& error) {
  MutexLock lock(&mu_);
  status_.phase = JobPhase::kFailed;
  status_.error = std::string(error.message());
  changed_.NotifyAll();
}

void Coordinator::ExpireLeases() {
  MutexLock lock(&mu_);
  for (const Member& member : membership_.ExpireLeases()) {
    LogWarning("lost ", member.task.ToString(), " (", member.peer, "): not heard of for ",
               absl::FormatDuration(options_.lease));
    TakeBackWork(member);
    changed_.NotifyAll();
  }
}

void Coordinator::TakeBackWork(const Member& member) {
  paces_.erase(member.incarnation);
  Requests& requests = requests_[member.incarnation];
  requests.granted = 0;
  requests.lease.reset();
  if (!ledger_.has_value()) return;
  const int64_t tickets = ledger_->Release(member.incarnation);
  if (tickets > 0) LogInfo(tickets, " steps of ", member.task.ToString(), " go to others");
}

int64_t Coordinator::WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop) {
  MutexLock lock(&mu_);
  while (ledger_->completed_steps() < step && status_.totals.non_finite_losses == 0 &&
         clock_->Monotonic() < until && !stop.raised()) {
    WaitBriefly(until);
  }
  return ledger_->completed_steps();
}

bool Coordinator::WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + timeout;
  while (status_.evaluated_step < step) {
    if (clock_->Monotonic() >= until || stop.raised()) return false;
    WaitBriefly(until);
  }
  return true;
}

bool Coordinator::WaitUntilAlone(absl::Duration timeout) {
  MutexLock lock(&mu_);
  const absl::Duration until = clock_->Monotonic() + timeout;
  while (!EveryoneLeft()) {
    if (clock_->Monotonic() >= until) return false;
    WaitBriefly(until);
  }
  return true;
}

bool Coordinator::EveryoneLeft() const {
  const std::vector<Member> members = membership_.Members();
  return std::none_of(members.begin(), members.end(),
                      [](const Member& member) { return member.state == Member::kAlive; });
}

void Coordinator::WaitBriefly(absl::Duration until) {
  changed_.WaitFor(&mu_, std::min(kLongestWait, until - clock_->Monotonic()));
}

std::optional<LossCurve::Point> Coordinator::TakeLossPoint() {
  MutexLock lock(&mu_);
  return losses_.has_value() ? losses_->TakeComplete() : std::nullopt;
}

std::optional<LossCurve::Point> Coordinator::TakeLastLossPoint() {
  MutexLock lock(&mu_);
  return losses_.has_value() ? losses_->TakeRest() : std::nullopt;
}

v1::JobState Coordinator::LedgerState() const {
  MutexLock lock(&mu_);
  v1::JobState state = ledger_->ToState();
  state.set_config_hash(options_.config_hash);
  return state;
}

Coordinator::Status Coordinator::GetStatus() const {
  MutexLock lock(&mu_);
  Status status = status_;
  status.members = membership_.Members();
  if (ledger_.has_value()) {
    status.step = ledger_->completed_steps();
    status.max_steps = ledger_->options().max_steps;
    status.epoch = ledger_->epochs_completed();
  }
  return status;
}

JobPhase Coordinator::phase() const {
  MutexLock lock(&mu_);
  return status_.phase;
}

bool Coordinator::AnyAlive(Role role) const {
  MutexLock lock(&mu_);
  return membership_.AnyAlive(role);
}

}  // namespace keelson
