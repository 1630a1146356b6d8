#include "evaluator/scored_snapshots.h"

#include <set>

#include "core/base/status_macros.h"
#include "core/checkpoint/job_state.h"

namespace keelson {
namespace {

// The steps of the job's snapshots, of all that are named in the order of their commits: one after
// which one of the same or an earlier step was committed is none of them.
std::set<int64_t> StepsOfJob(const std::vector<SnapshotInfo>& named) {
  std::set<int64_t> steps;
  for (auto snapshot = named.rbegin(); snapshot != named.rend(); ++snapshot) {
    if (steps.empty() || snapshot->step < *steps.begin()) steps.insert(snapshot->step);
  }
  return steps;
}

}  // namespace

absl::StatusOr<std::vector<SnapshotInfo>> ScoredSnapshots::Look(
    absl::FunctionRef<absl::Status(int64_t step)> forget_after) {
  // A file of the newest snapshot may be missing for a moment, which is no reason to forget.
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> named, directory_->ListNamed());
  const std::set<int64_t> steps = StepsOfJob(named);
  if (!steps.empty()) RETURN_IF_ERROR(forget_after(*steps.rbegin()));
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> snapshots, directory_->List());
  std::erase_if(snapshots, [&](const SnapshotInfo& each) { return !steps.contains(each.step); });
  std::erase_if(identities_, [&](const auto& entry) { return !steps.contains(entry.first); });
  Identify(snapshots);
  return snapshots;
}

void ScoredSnapshots::Identify(const std::vector<SnapshotInfo>& snapshots) {
  for (const SnapshotInfo& snapshot : snapshots) {
    if (outputs_->Find(snapshot.step) == nullptr) continue;
    const auto known = identities_.find(snapshot.step);
    if (known != identities_.end() && known->second.time == snapshot.time) continue;
    const absl::StatusOr<uint64_t> id = ReadSnapshotId(snapshot.prefix, directory_->file_system());
    if (id.ok()) {
      identities_[snapshot.step] = {snapshot.time, *id};
    } else {
      identities_.erase(snapshot.step);
    }
  }
}

const EvaluationRecord* ScoredSnapshots::EvaluationOf(int64_t step) const {
  const EvaluationRecord* const record = outputs_->Find(step);
  const auto identity = identities_.find(step);
  const bool other = record != nullptr && identity != identities_.end() &&
                     identity->second.id != record->snapshot_id;
  return other ? nullptr : record;
}

std::optional<int64_t> ScoredSnapshots::FirstUnscored() const {
  for (const auto& [step, identity] : identities_) {
    if (EvaluationOf(step) == nullptr) return step;
  }
  return std::nullopt;
}

}  // namespace keelson
