#include "core/tensor_files/snapshot_name.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/checkpoint_directory.h"

namespace keelson {
namespace {

// The last bytes of a file of leveldb's table format.
constexpr absl::string_view kTableMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
constexpr absl::string_view kHdf5Magic("\x89HDF\r\n\x1a\n", 8);
constexpr absl::string_view kZipMagic("PK\x03\x04", 4);

bool IsSavedModel(const std::string& name) { return FileExists(JoinPath(name, "saved_model.pb")); }

std::string SavedModelVariables(const std::string& name) {
  return JoinPath(name, "variables/variables");
}

// The beginning and the end of a file; empty if it cannot be read.
std::pair<std::string, std::string> Ends(const std::string& path) {
  constexpr size_t kBytes = 8;
  const auto file = FileSystem::Real()->OpenForRead(path);
  std::string begin(kBytes, '\0');
  std::string end(kBytes, '\0');
  if (!file.ok() || (*file)->size() < kBytes || !(*file)->Read(0, kBytes, begin.data()).ok() ||
      !(*file)->Read((*file)->size() - kBytes, kBytes, end.data()).ok()) {
    return {};
  }
  return {begin, end};
}

// What an existing file is that holds a model all the same, and how to get it into one that can be
// read: "", or text that ends in "; ".
std::string Unreadable(const std::string& path) {
  const auto [begin, end] = Ends(path);
  if (end == kTableMagic) {
    return "a checkpoint in TensorFlow's V1 format; tf.compat.v1.train.Saver() restores it and "
           "saves it in V2, which can be read; ";
  }
  if (begin == kHdf5Magic ||
      (absl::StartsWith(begin, kZipMagic) && absl::EndsWith(path, ".keras"))) {
    return "a file of Keras; tf.train.Checkpoint(model).save(PREFIX) or "
           "numpy.savez(FILE, **{w.path: w.numpy() for w in model.weights}) in Python writes what "
           "can be read; ";
  }
  return "no snapshot: ";
}

}  // namespace

bool IsDirectory(const std::string& name) { return ListDirectory(name).ok(); }

absl::StatusOr<std::vector<SnapshotInfo>> SnapshotsOf(const std::string& directory,
                                                      ForeignPaths foreign) {
  const CheckpointDirectory snapshots(FileSystem::Real(), directory, Clock::Real(), foreign,
                                      SnapshotNames::kAny);
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
  if (IsSavedModel(name)) return SavedModelVariables(name);
  if (!IsDirectory(name)) {
    return absl::NotFoundError(absl::StrCat(name, ": ", Unreadable(name), "expected ",
                                            IndexPath(prefix),
                                            ", or a directory with a file 'checkpoint'"));
  }
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, SnapshotsOf(name, foreign));
  return snapshots.back().prefix;
}

}  // namespace keelson
