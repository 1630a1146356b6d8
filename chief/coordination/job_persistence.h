// What of the job outlives this process: the state that is persisted at the servers, and the part
// of it that snapshots have.
#ifndef KEELSON_CHIEF_COORDINATION_JOB_PERSISTENCE_H_
#define KEELSON_CHIEF_COORDINATION_JOB_PERSISTENCE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/stored_versions.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class JobPersistence {
 public:
  // `state` outlives this.
  explicit JobPersistence(CoordinatorState* state) : state_(state) {}

  // The job state to persist at the servers, with version `job.state_version`. Before training it
  // has the members only.
  v1::PersistedJobState PersistedState() const;
  // The ledger's state for a snapshot, with the configuration's hash and the mode. Call it after
  // training has started.
  v1::JobState LedgerState() const;

  // The servers hold the persisted job state of this version.
  void NoteStored(uint64_t version);
  // True: something that a successor must know (a member joined, the mode was changed) is not yet
  // persisted at the servers (NoteStored), so that the state should be stored at once.
  bool StateUrgent() const;
  StateVersions versions() const;

  // Waits until the servers hold all that a successor must know. False: that took longer than
  // `longest` (real time).
  bool WaitUntilStored(absl::Duration longest);
  // Waits until MemberRoster::TakeEnded has something to return, until StateUrgent and the clock's
  // monotonic time is at least `stores_from`, or until `stop` is raised. A job that is done has
  // neither.
  void WaitForUrgent(absl::Duration stores_from, const StopSignal& stop);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_JOB_PERSISTENCE_H_
