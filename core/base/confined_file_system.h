// A file system that ends at a directory, for those who open files at a caller's request.
#ifndef KEELSON_CORE_BASE_CONFINED_FILE_SYSTEM_H_
#define KEELSON_CORE_BASE_CONFINED_FILE_SYSTEM_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

class OwnedDescriptor;

// The real file system at `root` and beneath. Paths are whole ("ROOT/model.ckpt-1.index"); they are
// opened from a handle of the directory, which is taken anew for each operation, so that the
// directory may be removed and made again. Links beneath it are not followed; `root` itself may be
// one, or lie behind one.
//
// All methods: PERMISSION_DENIED: the path is not one of `root`, has a component "..", or goes
// through a link. Thread-safe.
class ConfinedFileSystem : public FileSystem {
 public:
  // How paths are walked: by the kernel (openat2), or component by component where that has no such
  // call (before Linux 5.6, or filtered by seccomp). kAuto decides with each operation.
  enum class Walk { kAuto, kByComponent };

  explicit ConfinedFileSystem(absl::string_view root, Walk walk = Walk::kAuto);

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override;
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<std::string> Resolve(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                        absl::string_view content) override;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

 private:
  // The rest of `path` after the root; "." for the root.
  absl::StatusOr<std::string> Inner(const std::string& path) const;
  // A descriptor; on an error a negative number, with errno set.
  int Open(const std::string& inner, int flags) const;
  // The directory of a path that is not the root's.
  absl::StatusOr<OwnedDescriptor> OpenParent(const std::string& path) const;

  const std::string root_;
  const Walk walk_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_CONFINED_FILE_SYSTEM_H_
