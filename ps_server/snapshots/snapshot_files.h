// The snapshots in a server's model directory: files that it writes and reads at the chief's
// request.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_SNAPSHOT_FILES_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_SNAPSHOT_FILES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/confined_file_system.h"
#include "core/base/file_system.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "keelson/v1/parameter_service.pb.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// Callers say which step they mean; names follow from it here, and are opened beneath the directory
// without following links (ConfinedFileSystem). Thread-safe.
//
// All methods: FAILED_PRECONDITION: the server has no directory. INVALID_ARGUMENT: a step below 0.
// Otherwise as file_system.h.
class SnapshotFiles {
 public:
  // `model_dir` is empty where the chief alone reads and writes snapshots. `file_system` replaces
  // the real one, beneath the directory; null: it does not. What the pointers mean outlives this.
  SnapshotFiles(const std::string& model_dir, const Clock* clock,
                FileSystem* file_system = nullptr);

  // Opens the data file of a snapshot that is about to be written, which waits for the chief's
  // commit under the name PendingPath. INVALID_ARGUMENT: not one of its data files.
  // NOT_FOUND: this machine does not have the directory.
  absl::StatusOr<std::unique_ptr<BundleDataWriter>> Create(const v1::WriteSnapshotRequest& request);

  // Makes a shard of the snapshot of a step, on so many threads. Errors of RestoreShard.
  absl::StatusOr<std::unique_ptr<ShardStore>> Restore(ShardStore::Options options, int64_t step,
                                                      int threads = 1);

 private:
  absl::Status Check(absl::string_view call, int64_t step) const;

  ConfinedFileSystem confined_;
  FileSystem* const file_system_;
  const CheckpointDirectory directory_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_SNAPSHOT_FILES_H_
