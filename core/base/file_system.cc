#include "core/base/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/file_operation.h"
#include "core/base/posix_file.h"
#include "core/base/posix_lock.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<OwnedDescriptor> OpenDirectoryOf(const std::string& path) {
  OwnedDescriptor directory(open(DirectoryOf(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.open()) return SystemError("cannot open the directory of", path, errno);
  return directory;
}

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override {
    const FileOperation operation("open", path);
    return AppendTo(open(path.c_str(), AppendFlags(truncate), kNewFileMode), path);
  }

  absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) override {
    const FileOperation operation("open", path);
    return AppendTo(open(path.c_str(), kExclusiveFlags, kNewFileMode), path);
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    const FileOperation operation("open", path);
    return ReadFrom(open(path.c_str(), kReadFlags), path);
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    const FileOperation operation("stat", path);
    struct stat info;
    if (stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return SystemError("cannot look for", path, errno);
  }

  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override {
    const FileOperation operation("stat", path);
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return SystemError("cannot read", path, errno);
    return absl::TimeFromTimespec(info.st_mtim);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    const FileOperation operation("readdir", path);
    return NamesIn(open(path.c_str(), kDirectoryFlags), path);
  }

  absl::StatusOr<std::string> Resolve(const std::string& path) override {
    const FileOperation operation("realpath", path);
    const std::unique_ptr<char, decltype(&free)> resolved(realpath(path.c_str(), nullptr), &free);
    if (resolved == nullptr) return SystemError("cannot find", path, errno);
    return std::string(resolved.get());
  }

  absl::Status CreateDirectories(const std::string& path) override {
    const FileOperation operation("mkdir", path);
    // Others may make the same directories meanwhile: each is made first, and looked at afterwards.
    const std::string parent = DirectoryOf(path);
    const auto make = [&path] { return mkdir(path.c_str(), kNewDirectoryMode) == 0 ? 0 : errno; };
    int error = make();
    if (error == ENOENT && parent != path) {
      RETURN_IF_ERROR(CreateDirectories(parent));
      error = make();
    }
    if (error != 0 && IsDirectory(path)) return absl::OkStatus();
    if (error == EEXIST) error = ENOTDIR;
    if (error != 0) return SystemError("cannot create directory", path, error);
    // A parent that may be written but not read cannot be synced.
    SyncDirectory(parent).IgnoreError();
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    const FileOperation operation("unlink", path);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return SystemError("cannot remove", path, errno);
    }
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    const FileOperation operation("rename", to);
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemError(absl::StrCat("cannot rename ", from, " to"), to, errno);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                        absl::string_view content) override {
    const FileOperation operation("replacing", path);
    ASSIGN_OR_RETURN(const OwnedDescriptor directory, OpenDirectoryOf(path));
    ASSIGN_OR_RETURN(std::string replaced, ReplaceIn(directory.get(), path, version, content));
    RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
    return replaced;
  }

  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) override {
    const FileOperation operation("flock", path);
    ASSIGN_OR_RETURN(const OwnedDescriptor directory, OpenDirectoryOf(path));
    return LockIn(directory.get(), path);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const FileOperation operation("fsync", path);
    return SyncOpened(open(path.c_str(), kDirectoryFlags), path);
  }
};

}  // namespace

absl::StatusOr<VersionedContent> FileSystem::ReadVersioned(const std::string& path,
                                                           uint64_t max_bytes) {
  ASSIGN_OR_RETURN(std::string content, ReadBoundedFile(path, max_bytes, this));
  std::string version = VersionOfContent(content);
  return VersionedContent{std::move(content), std::move(version)};
}

std::string VersionOfContent(absl::string_view content) {
  if (content.empty()) return "";
  return absl::StrCat(content.size(), "-", absl::Hex(StableHash(content)));
}

FileSystem* FileSystem::Real() {
  static PosixFileSystem* const file_system = new PosixFileSystem();
  return file_system;
}

}  // namespace keelson
