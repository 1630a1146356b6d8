#include "chief/coordination/snapshot_record.h"

#include <algorithm>
#include <utility>

namespace keelson {

void SnapshotRecord::Name(int64_t step, uint64_t snapshot_id) {
  ids_[step] = snapshot_id;
  if (ids_.size() > kMostNamed) ids_.erase(ids_.begin());
  TakeEarly();
}

void SnapshotRecord::SetNewest(int64_t step) {
  newest_step_ = step;
  TakeEarly();
}

void SnapshotRecord::TakeEarly() {
  if (!early_.has_value()) return;
  const Early early = *std::exchange(early_, std::nullopt);
  Acknowledge(early.step, early.snapshot_id, early.metrics);
}

bool SnapshotRecord::Acknowledge(int64_t step, uint64_t snapshot_id, const Metrics& metrics) {
  const auto named = ids_.find(step);
  const bool known = named != ids_.end() || step <= newest_step_;
  if (!known && (!early_.has_value() || step >= early_->step)) {
    early_ = Early{step, snapshot_id, metrics};
  }
  const bool own = named == ids_.end() ? known : snapshot_id == named->second;
  if (!own || step < evaluated_step_) return false;
  evaluated_step_ = step;
  evaluation_ = metrics;
  return true;
}

void SnapshotRecord::TakeOver(const v1::PersistedJobState& persisted) {
  newest_step_ = std::max(newest_step_, persisted.snapshot_step());
  evaluated_step_ = std::max(evaluated_step_, persisted.evaluated_step());
  TakeEarly();
}

void SnapshotRecord::ToPersisted(v1::PersistedJobState* persisted) const {
  persisted->set_snapshot_step(newest_step_);
  persisted->set_evaluated_step(evaluated_step_);
}

}  // namespace keelson
