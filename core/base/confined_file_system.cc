#include "core/base/confined_file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/file_operation.h"
#include "core/base/posix_file.h"
#include "core/base/posix_lock.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int kPathFlags = O_PATH | O_CLOEXEC;

std::string WithoutSlashes(absl::string_view root) {
  while (root.size() > 1 && root.back() == '/') root.remove_suffix(1);
  return std::string(root);
}

int OpenByKernel(int directory, const std::string& inner, int flags) {
  struct open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? kNewFileMode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, inner.c_str(), &how, sizeof(how)));
}

// Opens `name`, one component, in a directory without following it.
int OpenIn(const OwnedDescriptor& directory, const std::string& name, int flags) {
  // The kernel opens a link itself where only its path is wanted, and calls it no directory where
  // one is wanted.
  struct stat info;
  if (fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode) && (flags & O_EXCL) == 0) {
    errno = ELOOP;
    return -1;
  }
  const int fd = openat(directory.get(), name.c_str(), flags | O_NOFOLLOW, kNewFileMode);
  if (fd < 0 || (flags & O_PATH) == 0) return fd;
  OwnedDescriptor opened(fd);
  if (fstat(fd, &info) != 0) return -1;
  if (S_ISLNK(info.st_mode)) {
    errno = ELOOP;
    return -1;
  }
  return opened.Release();
}

}  // namespace

ConfinedFileSystem::ConfinedFileSystem(absl::string_view root, Walk walk)
    : root_(WithoutSlashes(root)), walk_(walk) {}

absl::StatusOr<std::string> ConfinedFileSystem::Inner(const std::string& path) const {
  absl::string_view rest = path;
  if (!absl::ConsumePrefix(&rest, root_) ||
      (!rest.empty() && rest.front() != '/' && root_ != "/")) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": does not lie in ", root_));
  }
  std::vector<absl::string_view> components = absl::StrSplit(rest, '/', absl::SkipEmpty());
  for (const absl::string_view component : components) {
    if (component == "..") {
      return absl::PermissionDeniedError(absl::StrCat(path, ": leads out of ", root_));
    }
  }
  return components.empty() ? "." : absl::StrJoin(components, "/");
}

int ConfinedFileSystem::Open(const std::string& inner, int flags) const {
  OwnedDescriptor directory(open(root_.c_str(), kPathFlags | O_DIRECTORY));
  if (!directory.open()) return -1;
  if (walk_ == Walk::kAuto) {
    const int fd = OpenByKernel(directory.get(), inner, flags);
    // EPERM is what some filters of system calls answer, EAGAIN a walk during a rename.
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return fd;
  }
  std::vector<std::string> components = absl::StrSplit(inner, '/');
  const std::string last = std::move(components.back());
  components.pop_back();
  for (const std::string& component : components) {
    directory = OwnedDescriptor(OpenIn(directory, component, kPathFlags | O_DIRECTORY));
    if (!directory.open()) return -1;
  }
  return OpenIn(directory, last, flags);
}

absl::StatusOr<OwnedDescriptor> ConfinedFileSystem::OpenParent(const std::string& path) const {
  RETURN_IF_ERROR(Inner(path).status());
  ASSIGN_OR_RETURN(const std::string inner, Inner(DirectoryOf(path)));
  OwnedDescriptor directory(Open(inner, kPathFlags | O_DIRECTORY));
  if (!directory.open()) return SystemError("cannot open the directory of", path, errno);
  return directory;
}

absl::StatusOr<std::unique_ptr<AppendFile>> ConfinedFileSystem::OpenForAppend(
    const std::string& path, bool truncate) {
  const FileOperation operation("open", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  return AppendTo(Open(inner, AppendFlags(truncate)), path);
}

absl::StatusOr<std::unique_ptr<AppendFile>> ConfinedFileSystem::CreateExclusive(
    const std::string& path) {
  const FileOperation operation("open", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  return AppendTo(Open(inner, kExclusiveFlags), path);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> ConfinedFileSystem::OpenForRead(
    const std::string& path) {
  const FileOperation operation("open", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  return ReadFrom(Open(inner, kReadFlags), path);
}

absl::StatusOr<bool> ConfinedFileSystem::Exists(const std::string& path) {
  const FileOperation operation("stat", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  if (OwnedDescriptor(Open(inner, kPathFlags)).open()) return true;
  const absl::Status status = SystemError("cannot look for", path, errno);
  if (absl::IsNotFound(status)) return false;
  return status;
}

absl::StatusOr<absl::Time> ConfinedFileSystem::ModificationTime(const std::string& path) {
  const FileOperation operation("stat", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  const OwnedDescriptor file(Open(inner, kPathFlags));
  struct stat info;
  if (!file.open() || fstat(file.get(), &info) != 0) return SystemError("cannot read", path, errno);
  return absl::TimeFromTimespec(info.st_mtim);
}

absl::StatusOr<std::vector<std::string>> ConfinedFileSystem::List(const std::string& path) {
  const FileOperation operation("readdir", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  return NamesIn(Open(inner, kDirectoryFlags), path);
}

absl::StatusOr<std::string> ConfinedFileSystem::Resolve(const std::string& path) {
  RETURN_IF_ERROR(Inner(path).status());
  return Real()->Resolve(path);
}

absl::Status ConfinedFileSystem::CreateDirectories(const std::string& path) {
  const FileOperation operation("mkdir", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  if (inner == ".") return Real()->CreateDirectories(root_);
  if (OwnedDescriptor(Open(inner, kPathFlags | O_DIRECTORY)).open()) return absl::OkStatus();
  RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  ASSIGN_OR_RETURN(const OwnedDescriptor parent, OpenParent(path));
  if (mkdirat(parent.get(), BaseName(path).c_str(), kNewDirectoryMode) != 0) {
    const int error = errno;
    // Another process may have made it meanwhile.
    if (OwnedDescriptor(Open(inner, kPathFlags | O_DIRECTORY)).open()) return absl::OkStatus();
    return SystemError("cannot create directory", path, error == EEXIST ? errno : error);
  }
  // A parent that may be written but not read cannot be synced.
  SyncDirectory(DirectoryOf(path)).IgnoreError();
  return absl::OkStatus();
}

absl::Status ConfinedFileSystem::Remove(const std::string& path) {
  const FileOperation operation("unlink", path);
  absl::StatusOr<OwnedDescriptor> parent = OpenParent(path);
  if (absl::IsNotFound(parent.status())) return absl::OkStatus();
  RETURN_IF_ERROR(parent.status());
  if (unlinkat(parent->get(), BaseName(path).c_str(), 0) != 0 && errno != ENOENT) {
    return SystemError("cannot remove", path, errno);
  }
  return absl::OkStatus();
}

absl::Status ConfinedFileSystem::Rename(const std::string& from, const std::string& to) {
  const FileOperation operation("rename", to);
  ASSIGN_OR_RETURN(const OwnedDescriptor source, OpenParent(from));
  ASSIGN_OR_RETURN(const OwnedDescriptor target, OpenParent(to));
  if (renameat(source.get(), BaseName(from).c_str(), target.get(), BaseName(to).c_str()) != 0) {
    return SystemError(absl::StrCat("cannot rename ", from, " to"), to, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ConfinedFileSystem::ReplaceIf(const std::string& path,
                                                          absl::string_view version,
                                                          absl::string_view content) {
  const FileOperation operation("replacing", path);
  ASSIGN_OR_RETURN(const OwnedDescriptor directory, OpenParent(path));
  ASSIGN_OR_RETURN(std::string replaced, ReplaceIn(directory.get(), path, version, content));
  RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
  return replaced;
}

absl::StatusOr<std::unique_ptr<FileLock>> ConfinedFileSystem::TryLock(const std::string& path) {
  const FileOperation operation("flock", path);
  ASSIGN_OR_RETURN(const OwnedDescriptor directory, OpenParent(path));
  return LockIn(directory.get(), path);
}

absl::Status ConfinedFileSystem::SyncDirectory(const std::string& path) {
  const FileOperation operation("fsync", path);
  ASSIGN_OR_RETURN(const std::string inner, Inner(path));
  return SyncOpened(Open(inner, kDirectoryFlags), path);
}

}  // namespace keelson
