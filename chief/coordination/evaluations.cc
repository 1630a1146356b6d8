#include "chief/coordination/evaluations.h"

namespace keelson {

void Evaluations::AcknowledgeEvaluation(int64_t step, uint64_t snapshot_id,
                                        const std::map<std::string, double>& metrics) {
  MutexLock lock(&state_->mu);
  if (state_->snapshots.Acknowledge(step, snapshot_id, metrics)) state_->changed.NotifyAll();
}

void Evaluations::NameSnapshot(int64_t step, uint64_t snapshot_id) {
  MutexLock lock(&state_->mu);
  state_->snapshots.Name(step, snapshot_id);
}

void Evaluations::SetSnapshotStep(int64_t step) {
  MutexLock lock(&state_->mu);
  state_->snapshots.SetNewest(step);
}

bool Evaluations::WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  while (state_->snapshots.evaluated_step() < step) {
    if (state_->clock->Monotonic() >= until || stop.raised()) return false;
    state_->WaitUntil(until);
  }
  return true;
}

}  // namespace keelson
