// The text file `checkpoint` of a model directory, which names the good snapshots
// (v1::CheckpointState).
#ifndef KEELSON_CORE_CHECKPOINT_STATE_FILE_H_
#define KEELSON_CORE_CHECKPOINT_STATE_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

// When the snapshot's index was written, for those without another time, as TensorFlow 1 writes
// them; where that is not known, the epoch of Unix.
absl::Time ModificationTimeOf(const SnapshotInfo& snapshot, FileSystem* file_system);

// Keeps nothing in memory. Errors name the file: DATA_LOSS when its content is not what it should
// be, otherwise as file_system.h.
class StateFile {
 public:
  struct State {
    std::vector<SnapshotInfo> snapshots;  // all that are named, oldest first
    absl::Time last_preserved;
    std::string version;  // of the state file
  };

  // CheckpointDirectory says what `foreign` and `names` let the file name. The file system outlives
  // the object.
  StateFile(FileSystem* file_system, std::string model_dir, ForeignPaths foreign,
            SnapshotNames names);

  const std::string& path() const { return path_; }

  // The content, or nothing if there is none.
  absl::StatusOr<std::optional<State>> Read() const;
  // Sets the version of `state` to the new one, where there was a file before. ABORTED: that had
  // another version than `state`.
  absl::Status Write(State* state) const;

 private:
  absl::StatusOr<SnapshotInfo> ParseSnapshot(const std::string& path) const;
  // The prefix for a path of the file.
  absl::StatusOr<std::string> PrefixOf(const std::string& path) const;

  FileSystem* const file_system_;
  const std::string model_dir_;
  const std::string path_;
  const ForeignPaths foreign_;
  const SnapshotNames names_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_STATE_FILE_H_
