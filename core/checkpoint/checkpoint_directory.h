// The model directory as TensorFlow lays it out: snapshots "model.ckpt-<step>", the text file
// `checkpoint` that names the good ones (v1::CheckpointState), and the marker of a finished job.
#ifndef KEELSON_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define KEELSON_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/checkpoint/done_marker.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/checkpoint/state_file.h"

namespace keelson {

struct RetentionPolicy {
  // The number of newest snapshots that are kept; 0: all.
  int64_t keep_max = 5;
  // A snapshot that is dropped stays on disk (not in the state file) if it is this many hours
  // younger than the last one that stayed (at first: than the first commit), and whole; 0: none
  // stays.
  double keep_every_n_hours = 0;
  // The snapshot of this step stays, too; kNoStep: none.
  int64_t kept_step = kNoStep;
  // What a delta that stays builds on stays, in the state file too (snapshot_chain.h). False: there
  // are no deltas, so that no snapshot is opened to see.
  bool deltas = true;
};

// Keeps nothing in memory. One process commits (the chief), any number may list.
// Errors name the file: DATA_LOSS when its content is not what it should be, otherwise as
// file_system.h.
class CheckpointDirectory {
 public:
  // Both pointers outlive the object. DATA_LOSS: a state file names a snapshot outside `model_dir`,
  // by "..", by a link, or by an absolute path (those that lie inside are fine: TensorFlow writes
  // them), unless `foreign` lets it; so nothing outside is read or deleted. Likewise a name that
  // `names` does not let.
  CheckpointDirectory(FileSystem* file_system, std::string model_dir, const Clock* clock,
                      ForeignPaths foreign = ForeignPaths::kRefused,
                      SnapshotNames names = SnapshotNames::kWithStep);

  const std::string& model_dir() const { return model_dir_; }
  FileSystem* file_system() const { return file_system_; }
  // "MODEL_DIR/model.ckpt-STEP": the name of a new snapshot.
  std::string SnapshotPrefix(int64_t step) const;
  // The prefix of a snapshot that is there: the one that the state file names for `step`, be it of
  // another name, else SnapshotPrefix.
  std::string FindSnapshot(int64_t step) const;

  // Snapshots that the state file names and whose index is there, oldest first. No state file:
  // none. UNAVAILABLE: one of these files is in sight, but cannot be opened (IsPresent).
  absl::StatusOr<std::vector<SnapshotInfo>> List() const;
  // The same with those whose index is missing.
  absl::StatusOr<std::vector<SnapshotInfo>> ListNamed() const;

  // The names of all files of snapshots in the directory, whether a state file names those or not;
  // nothing where the directory is missing.
  absl::StatusOr<std::vector<std::string>> SnapshotFiles() const;

  // Makes the snapshot of `step` the latest; then deletes the snapshots that `policy` does not
  // keep. Where the state file is missing beside complete snapshots of earlier steps it names them
  // again, and deletes none. One that a reader has leased (snapshot_lease.h) stays in the list
  // until a later Commit; so do up to 100 that cannot be deleted, which is logged, and the later
  // Commit deletes what is left of them, whoever commits then. `publish` completes the
  // snapshot's files once the list of snapshots has been read, which is replaced only if nobody has
  // changed it since: so whoever may commit when `publish` asks does not commit after a successor's
  // commit. UNAVAILABLE: the snapshot's index, which was written before, is not in sight. ABORTED:
  // the list was changed. Errors of `publish`.
  absl::Status Commit(
      int64_t step, const RetentionPolicy& policy,
      absl::FunctionRef<absl::Status()> publish = [] { return absl::OkStatus(); });

  // The names of the temporary files in the directory.
  absl::StatusOr<std::vector<std::string>> ListTemporaries() const;
  // Removes the remains of an interrupted run: these temporary files (others may be in use) but
  // those of snapshots, and leases that have expired. Goes on after an error; returns the first.
  absl::Status RemoveStaleFiles(absl::Span<const std::string> temporaries);
  // Removes what no snapshot of the state file has: parts of snapshots that were not committed,
  // data files without an index, and snapshots newer than the latest; the last two only where a
  // snapshot is committed, or of step 0. Older ones may be there because of keep_every_n_hours and
  // stay. Only for who may commit, and before it writes a snapshot. Goes on after an error; returns
  // the first.
  absl::Status RemoveStaleSnapshots();

  // Makes the snapshot of `step` the latest: later ones are no longer listed, and their files stay
  // until RemoveStaleSnapshots. Not while a job writes here. NOT_FOUND, with those that are there:
  // no snapshot of that step.
  absl::Status RollBack(int64_t step);

  // done_marker.h, in this directory.
  absl::Status WriteDoneMarker(int64_t step, uint64_t config_hash);
  absl::StatusOr<std::optional<DoneMarker>> ReadDoneMarker() const;
  absl::Status RemoveDoneMarker();

 private:
  // The complete snapshots of the directory before `step`, oldest first.
  absl::StatusOr<std::vector<SnapshotInfo>> UnnamedBefore(int64_t step) const;
  // Deletes them; the state file, which has the content `state`, names those again that stay.
  void DeleteSurplus(absl::Span<const SnapshotInfo> surplus, StateFile::State* state) const;
  absl::Status DeleteSnapshot(const SnapshotInfo& snapshot) const;

  FileSystem* const file_system_;
  const std::string model_dir_;
  const Clock* const clock_;
  const StateFile state_file_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
