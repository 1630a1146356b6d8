#include "chief/servers/delta_chain.h"

namespace keelson {

ServerCuts::Changes DeltaChain::ChangesToTell() const {
  ServerCuts::Changes changes;
  changes.keep = wanted();
  const bool may_follow = base_.has_value() && base_->deltas + 1 < policy_.full_every &&
                          base_->delta_bytes <= base_->whole_bytes / 2;
  if (may_follow) changes.base = base_->cut;
  return changes;
}

std::optional<v1::SnapshotBase> DeltaChain::BaseFor(const ServerCuts::Cut& cut) const {
  const bool possible =
      base_.has_value() && !cut.changes.empty() && cut.rows.changed <= cut.rows.all / 2;
  return possible ? std::optional(base_->name) : std::nullopt;
}

void DeltaChain::Note(uint64_t cut, bool delta, const v1::JobState& state, int64_t bytes) {
  if (!wanted()) return;
  if (!delta) {
    base_.reset();
    if (state.snapshot_id() == 0) return;  // it has no name
    base_ = Base();
    base_->whole_bytes = bytes;
  }
  base_->cut = cut;
  base_->name.set_step(state.global_step());
  base_->name.set_snapshot_id(state.snapshot_id());
  if (!delta) return;
  base_->delta_bytes += bytes;
  ++base_->deltas;
}

}  // namespace keelson
