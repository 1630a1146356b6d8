// The job's snapshots, and their evaluations by an evaluator.
#ifndef KEELSON_CHIEF_COORDINATION_EVALUATIONS_H_
#define KEELSON_CHIEF_COORDINATION_EVALUATIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/snapshot_record.h"
#include "core/base/stop_signal.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class Evaluations {
 public:
  // `state` outlives this.
  explicit Evaluations(CoordinatorState* state) : state_(state) {}

  // The job's snapshot of `step` has this id. Call it before anyone can find the snapshot.
  void NameSnapshot(int64_t step, uint64_t snapshot_id);
  // The newest snapshot.
  void SetSnapshotStep(int64_t step);

  // An evaluation of the snapshot of `step` with this id (JobState.snapshot_id). One that is not
  // the job's is ignored: training went back behind it, and there is another of that step, or none
  // yet.
  void AcknowledgeEvaluation(int64_t step, uint64_t snapshot_id,
                             const SnapshotRecord::Metrics& metrics);
  // Waits for an acknowledgement of `step`. False: not within `timeout`, or `stop` was raised.
  bool WaitForEvaluation(int64_t step, absl::Duration timeout, const StopSignal& stop);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_EVALUATIONS_H_
