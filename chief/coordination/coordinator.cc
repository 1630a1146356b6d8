#include "chief/coordination/coordinator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/log.h"

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

}  // namespace keelson
