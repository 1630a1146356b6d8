#include "chief/coordination/coordinator.h"

#include <utility>

#include "core/base/log.h"

namespace keelson {

Coordinator::Coordinator(const Options& options, const Clock* clock)
    : state_(std::make_unique<CoordinatorState>(options, clock)) {}

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
