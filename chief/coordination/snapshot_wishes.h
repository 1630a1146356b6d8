// Callers ask for a snapshot, and the job's lifecycle writes it.
#ifndef KEELSON_CHIEF_COORDINATION_SNAPSHOT_WISHES_H_
#define KEELSON_CHIEF_COORDINATION_SNAPSHOT_WISHES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class SnapshotWishes {
 public:
  // `state` outlives this.
  explicit SnapshotWishes(CoordinatorState* state) : state_(state) {}

  // Waits until there is a snapshot with the steps that are done now; returns its step.
  // FAILED_PRECONDITION: the job does not train. UNAVAILABLE: it could not be written, or was not
  // within `timeout`.
  absl::StatusOr<int64_t> Save(absl::Duration timeout);

  // ---- The side that writes.

  // Wishes are taken up from here on, until Close; each call of Close and Open wakes those who
  // wait. `why` answers them, and all later ones.
  void Open();
  void Close(const absl::Status& why);
  // True: a snapshot is wanted, and End tells of it.
  bool Begin();
  void End(const absl::StatusOr<int64_t>& outcome);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_SNAPSHOT_WISHES_H_
