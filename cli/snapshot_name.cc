#include "cli/snapshot_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"

namespace keelson {

bool IsDirectory(const std::string& name) { return ListDirectory(name).ok(); }

absl::StatusOr<std::vector<SnapshotInfo>> SnapshotsOf(const std::string& directory,
                                                      ForeignPaths foreign) {
  const CheckpointDirectory snapshots(FileSystem::Real(), directory, Clock::Real(), foreign);
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> found, snapshots.ListNamed());
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": no snapshots: expected a file 'checkpoint' that names them"));
  }
  return found;
}

absl::StatusOr<std::string> ResolveSnapshot(const std::string& name, ForeignPaths foreign) {
  const std::string prefix(absl::StripSuffix(name, IndexPath("")));
  if (FileExists(IndexPath(prefix))) return prefix;
  if (!IsDirectory(name)) {
    return absl::NotFoundError(absl::StrCat(name, ": no snapshot: expected ", IndexPath(prefix),
                                            ", or a directory with a file 'checkpoint'"));
  }
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, SnapshotsOf(name, foreign));
  return snapshots.back().prefix;
}

}  // namespace keelson
