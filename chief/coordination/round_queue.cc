#include "chief/coordination/round_queue.h"

#include "core/base/log.h"

namespace keelson {

std::optional<RoundQueue::Round> RoundQueue::WaitForRound(absl::Duration max_wait,
                                                          const StopSignal* stop) {
  const StopCallback wake(stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + max_wait;
  while (true) {
    if (state_->training.has_value() && state_->training->work().StagedRound().has_value()) {
      return state_->training->work().StagedRound();
    }
    if (state_->clock->Monotonic() >= until || (stop != nullptr && stop->raised())) {
      return std::nullopt;
    }
    state_->clock->WaitUntil(&state_->mu, &state_->round_staged, until);
  }
}

void RoundQueue::RoundCommitted(const Round& round) {
  MutexLock lock(&state_->mu);
  if (state_->training.has_value() && state_->training->work().RoundCommitted(round)) {
    state_->WakeAfterSteps();
    state_->WakeMembers();
  }
}

void RoundQueue::RoundFailed(const Round& round) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || !state_->training->work().RoundFailed(round)) return;
  LogWarning("step ", round.step, " is tried again: a server has lost its gradients");
  state_->WakeAll();
}

void RoundQueue::NoteForeignCommit(int64_t newest) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || !state_->training->work().NoteForeignCommit(newest)) return;
  LogWarning("step ", newest, " was committed for an earlier chief; servers may lack it");
  state_->WakeAll();
}

}  // namespace keelson
