// Writes snapshots of the whole job, and finds the one to continue from.
#ifndef KEELSON_CHIEF_SNAPSHOTTER_H_
#define KEELSON_CHIEF_SNAPSHOTTER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/server_group.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Name of the string tensor that holds the v1::JobState.
inline constexpr char kJobStateName[] = "_keelson/job";

// Thread-safe, but one Write at a time.
class Snapshotter {
 public:
  // Both outlive this.
  Snapshotter(CheckpointDirectory* directory, ServerGroup* servers, RetentionPolicy retention,
              const Clock* clock)
      : directory_(directory), servers_(servers), retention_(retention), clock_(clock) {}

  // Writes a snapshot of step `state.global_step()`: the servers' parts side by side, then the
  // chief's own part (global_step, job state), the index, and last the state file. `state` must
  // have been taken before, so that no step counts as done whose push is not in the servers' cuts.
  // When that step is the latest snapshot's, that one stays as it is.
  // On an error the parts are removed and the latest snapshot is what it was.
  absl::Status Write(const v1::JobState& state);

  // Tries the snapshots of the directory, newest first: reads the job state and lets `restore` use
  // the prefix. A damaged one (DATA_LOSS, NOT_FOUND) is logged and the one before is tried. Returns
  // an empty prefix when there are none. DATA_LOSS: there are, but none is usable.
  struct Restored {
    std::string prefix;
    v1::JobState state;
  };
  absl::StatusOr<Restored> RestoreLatest(absl::FunctionRef<absl::Status(const Restored&)> restore);

  // Prefix of the newest snapshot; empty: none.
  std::string latest_prefix() const;

 private:
  absl::StatusOr<std::vector<BundleIndexEntry>> WriteChiefPart(const std::string& prefix,
                                                               int data_shard, int num_data_shards,
                                                               const v1::JobState& state);
  absl::Status WriteParts(const std::string& prefix, const v1::JobState& state);
  void SetLatest(const std::string& prefix);

  CheckpointDirectory* const directory_;
  ServerGroup* const servers_;
  const RetentionPolicy retention_;
  const Clock* const clock_;

  mutable Mutex mu_;
  std::string latest_prefix_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SNAPSHOTTER_H_
