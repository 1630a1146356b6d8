#include "chief/coordination/job_control.h"

#include <utility>

#include "core/base/log.h"

namespace keelson {

absl::Status JobControl::EndTraining(std::string reason) {
  MutexLock lock(&state_->mu);
  if (state_->training.has_value() && !state_->training->work().end_reason().empty()) {
    return absl::OkStatus();
  }
  if (!state_->training.has_value() || state_->phase != JobPhase::kTraining || state_->Trained()) {
    return absl::FailedPreconditionError("end of training: the job does not train");
  }
  const WorkLedger& ledger = state_->training->ledger();
  LogInfo("training is to end early, after ", ledger.completed_steps(), " steps",
          ledger.options().OfSteps(), ": ", reason);
  state_->training->work().EndEarly(std::move(reason));
  state_->RequestPersistence();
  state_->WakeAll();
  return absl::OkStatus();
}

absl::Status JobControl::SetMode(const ConsistencyMode& mode) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || state_->phase != JobPhase::kTraining || state_->Trained()) {
    return absl::FailedPreconditionError("consistency mode: the job does not train");
  }
  if (mode.synchronous() && state_->training->ledger().options().stream) {
    return absl::InvalidArgumentError(
        "consistency mode: expected async or bounded_staleness, as the data is a stream, found " +
        mode.ToString());
  }
  LogInfo("consistency mode: from ", state_->training->work().mode().ToString(), " to ",
          mode.ToString());
  state_->training->work().SetMode(mode);
  state_->RequestPersistence();
  state_->WakeAll();
  return absl::OkStatus();
}

ConsistencyMode JobControl::mode() const {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->work().mode() : state_->options.mode;
}

uint64_t JobControl::sync_period() const {
  MutexLock lock(&state_->mu);
  return state_->training->work().sync_period();
}

uint64_t JobControl::HoldMode() {
  MutexLock lock(&state_->mu);
  state_->training->work().HoldMode();
  return state_->training->work().sync_period();
}

void JobControl::ReleaseMode() {
  MutexLock lock(&state_->mu);
  const bool waits = state_->training->work().next_mode().has_value();
  state_->training->work().ReleaseMode();
  if (waits) state_->WakeAll();
}

void JobControl::SetPhase(JobPhase phase) {
  MutexLock lock(&state_->mu);
  state_->phase = phase;
  state_->WakeAll();
}

void JobControl::Fail(const absl::Status& error) {
  MutexLock lock(&state_->mu);
  state_->phase = JobPhase::kFailed;
  state_->error = std::string(error.message());
  state_->WakeAll();
}

int64_t JobControl::WaitForSteps(int64_t step, absl::Duration until, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const auto awaited = state_->awaited_steps.insert(step);
  while (!state_->training->Reached(step, state_->WorkersAway()) && !state_->saves.waiting() &&
         state_->clock->Monotonic() < until && !stop.raised()) {
    state_->WaitUntil(until);
  }
  state_->awaited_steps.erase(awaited);
  return state_->training->ledger().completed_steps();
}

bool JobControl::PauseWork(absl::Duration timeout) {
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  state_->training->work().Pause();
  ++state_->awaiting_idle;
  while (!state_->Idle() && state_->clock->Monotonic() < until) {
    state_->WaitUntil(until);
  }
  --state_->awaiting_idle;
  return state_->Idle();
}

void JobControl::ResumeWork() {
  MutexLock lock(&state_->mu);
  state_->training->work().EndPause();
  state_->WakeAll();
}

JobPhase JobControl::phase() const {
  MutexLock lock(&state_->mu);
  return state_->phase;
}

std::string JobControl::error() const {
  MutexLock lock(&state_->mu);
  return state_->error;
}

}  // namespace keelson
