// Resolves names of snapshots as users give them.
#ifndef KEELSON_CORE_TENSOR_FILES_SNAPSHOT_NAME_H_
#define KEELSON_CORE_TENSOR_FILES_SNAPSHOT_NAME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/snapshot_info.h"

namespace keelson {

// The prefix of the snapshot, "DIR/model.ckpt-100". `name`: that, its index file, or a directory,
// whose newest snapshot is meant; `foreign` says where that may be. NOT_FOUND: there is no such
// snapshot. Errors of CheckpointDirectory::List.
absl::StatusOr<std::string> ResolveSnapshot(const std::string& name,
                                            ForeignPaths foreign = ForeignPaths::kRefused);

// The snapshots of a directory, oldest first; at least one. NOT_FOUND: `directory` holds none.
absl::StatusOr<std::vector<SnapshotInfo>> SnapshotsOf(
    const std::string& directory, ForeignPaths foreign = ForeignPaths::kRefused);

// Whether `name` is a directory rather than a snapshot.
bool IsDirectory(const std::string& name);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_SNAPSHOT_NAME_H_
