// Which of the job's snapshots have evaluations.
#ifndef KEELSON_EVALUATOR_SCORED_SNAPSHOTS_H_
#define KEELSON_EVALUATOR_SCORED_SNAPSHOTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "evaluator/evaluation_outputs.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// Where training has gone back behind a snapshot there may be another one of the same step, which
// the evaluation of the former one does not concern. Not thread-safe.
class ScoredSnapshots {
 public:
  // Both outlive this. `outputs` has the evaluations.
  ScoredSnapshots(const CheckpointDirectory* directory, const EvaluationOutputs* outputs)
      : directory_(directory), outputs_(outputs) {}

  // The job's snapshots: those that training has gone back behind are left out. `forget_after` is
  // called with the step of the newest one, so that the evaluations of later steps are dropped; its
  // error is returned. Otherwise errors of CheckpointDirectory::List.
  absl::StatusOr<std::vector<SnapshotInfo>> Look(
      absl::FunctionRef<absl::Status(int64_t step)> forget_after);

  // Finds out which of these snapshots the evaluations of their steps are of.
  void Identify(const std::vector<SnapshotInfo>& snapshots);
  // The snapshot, which has this JobState.snapshot_id, was scored.
  void NoteScored(const SnapshotInfo& snapshot, uint64_t id) {
    identities_[snapshot.step] = {snapshot.time, id};
  }

  // The evaluation of the job's snapshot of `step`; null: it has none. That of another snapshot of
  // the step, from before training went back, does not count.
  const EvaluationRecord* EvaluationOf(int64_t step) const;
  // The first step whose snapshot was identified and has no evaluation; nothing: there is none.
  std::optional<int64_t> FirstUnscored() const;

 private:
  struct Identity {
    absl::Time time;  // of its commit
    uint64_t id = 0;  // JobState.snapshot_id
  };

  const CheckpointDirectory* const directory_;
  const EvaluationOutputs* const outputs_;
  // By step, what identifies the snapshots that have evaluations and can be read.
  std::map<int64_t, Identity> identities_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCORED_SNAPSHOTS_H_
