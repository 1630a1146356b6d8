// Snapshots of the running job: which state they have, who may commit them, and which of the
// earlier ones is kept.
#ifndef KEELSON_CHIEF_LIFECYCLE_JOB_SNAPSHOTS_H_
#define KEELSON_CHIEF_LIFECYCLE_JOB_SNAPSHOTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/lifecycle/leadership.h"
#include "chief/servers/server_group.h"
#include "chief/servers/snapshotter.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Writes what the coordinator and the servers hold through the Snapshotter, as the chief that leads
// the job. A snapshot becomes valid only when its ledger state is persisted at all servers, which
// obey this chief, and when the storage says that the model directory is this chief's. While
// training diverges, the newest snapshot from before that is kept beside all that follow.
//
// Not thread-safe: the thread of the job's lifecycle calls it.
class JobSnapshots {
 public:
  // All outlive this.
  JobSnapshots(CheckpointDirectory* directory, Snapshotter* snapshotter, ServerGroup* servers,
               Coordinator* coordinator, Leadership* leadership)
      : directory_(directory),
        snapshotter_(snapshotter),
        servers_(servers),
        coordinator_(coordinator),
        leadership_(leadership) {}

  // Confirms that the model directory is this chief's, and removes, until that has succeeded once,
  // what predecessors have begun to write and not committed, so that one that wakes up has nothing
  // to commit. Call it when every server has admitted this chief. Each snapshot does it too, and is
  // not written before the removal has succeeded. ALREADY_EXISTS: the model directory is lost.
  // Otherwise errors of file_system.h.
  absl::Status RemoveUncommitted();

  // Writes a snapshot of the ledger's state, and tells the coordinator and the leadership of it.
  // An error, which is logged, is one of Snapshotter::Write, or ABORTED or ALREADY_EXISTS: this
  // chief no longer leads.
  absl::Status Write();
  // The same of a state that the ledger does not have yet: that of the job's beginning.
  absl::Status WriteState(const v1::JobState& state);
  // The same with the steps that are under way: nothing is handed out from here on (ResumeWork),
  // and they are waited for, for `step_wait` at most. UNAVAILABLE: the newest snapshot has all
  // steps that are done, and lacks what servers may have of those under way.
  absl::Status WritePaused(absl::Duration step_wait);

 private:
  absl::Status WriteWith(absl::FunctionRef<v1::JobState()> take_state);
  // OK: a snapshot may be written.
  absl::Status Prepare();
  // Where none was in sight when the running job was taken up, one may be now.
  absl::Status LookForNewest();
  // OK: the snapshot that was written may become valid.
  absl::Status Confirm();
  // The step of a snapshot that survives the retention; kNoStep: none.
  int64_t KeptStep(const CoordinatorStatus& job);

  CheckpointDirectory* const directory_;
  Snapshotter* const snapshotter_;
  ServerGroup* const servers_;
  Coordinator* const coordinator_;
  Leadership* const leadership_;

  // The newest snapshot that was written while training did not diverge; kNoStep: none by this
  // process.
  int64_t good_step_ = kNoStep;
  // What predecessors have not committed was removed.
  bool cleaned_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_JOB_SNAPSHOTS_H_
