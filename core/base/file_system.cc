#include "core/base/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status SystemError(absl::string_view what, absl::string_view path, int error) {
  const std::string text = absl::StrCat(what, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    case EEXIST:
      return absl::AlreadyExistsError(text);
    default:
      return absl::UnavailableError(text);
  }
}

class PosixAppendFile : public AppendFile {
 public:
  PosixAppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixAppendFile() override {
    if (fd_ >= 0) close(fd_);
  }

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SystemError("cannot write", path_, errno);
      data.remove_prefix(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (fsync(fd_) != 0) return SystemError("cannot sync", path_, errno);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    RETURN_IF_ERROR(Sync());
    if (close(std::exchange(fd_, -1)) != 0) return SystemError("cannot close", path_, errno);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  int fd_;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string path, int fd, uint64_t size)
      : RandomAccessFile(std::move(path), size), fd_(fd) {}
  ~PosixRandomAccessFile() override { close(fd_); }

  absl::Status Read(uint64_t offset, size_t size, char* buffer) const override {
    while (size > 0) {
      const ssize_t n = pread(fd_, buffer, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SystemError("cannot read", path(), errno);
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat(path(), ": ends at byte ", offset, ", expected ", size, " more"));
      }
      buffer += n;
      offset += static_cast<uint64_t>(n);
      size -= n;
    }
    return absl::OkStatus();
  }

 private:
  const int fd_;
};

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The error for a pipe, a device or a directory.
absl::Status NotRegular(absl::string_view path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
}

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (truncate ? O_TRUNC : O_APPEND);
    const int fd = open(path.c_str(), flags, 0644);
    if (fd < 0) return SystemError("cannot open for writing", path, errno);
    return std::make_unique<PosixAppendFile>(path, fd);
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    // Without this flag, opening a pipe blocks until a writer opens it.
    const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    // These are the errors for a socket, or for a device that is absent.
    if (fd < 0 && (errno == ENXIO || errno == ENODEV)) return NotRegular(path);
    if (fd < 0) return SystemError("cannot open", path, errno);
    struct stat info;
    if (fstat(fd, &info) != 0) {
      const int error = errno;
      close(fd);
      return SystemError("cannot read", path, error);
    }
    if (!S_ISREG(info.st_mode)) {
      close(fd);
      return NotRegular(path);
    }
    return std::make_unique<PosixRandomAccessFile>(path, fd, static_cast<uint64_t>(info.st_size));
  }

  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return SystemError("cannot read", path, errno);
    return absl::TimeFromTimespec(info.st_mtim);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return SystemError("cannot list", path, errno);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status CreateDirectories(const std::string& path) override {
    if (IsDirectory(path)) return absl::OkStatus();
    if (Exists(path)) return SystemError("cannot create directory", path, ENOTDIR);
    const std::string parent = DirectoryOf(path);
    RETURN_IF_ERROR(CreateDirectories(parent));
    if (mkdir(path.c_str(), 0777) != 0 && !IsDirectory(path)) {
      return SystemError("cannot create directory", path, errno);
    }
    // A parent that may be written but not read cannot be synced.
    SyncDirectory(parent).IgnoreError();
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return SystemError("cannot remove", path, errno);
    }
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemError(absl::StrCat("cannot rename ", from, " to"), to, errno);
    }
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return SystemError("cannot open directory", path, errno);
    const int result = fsync(fd);
    const int error = errno;
    close(fd);
    // Some network file systems cannot sync directories; their renames are durable by themselves.
    if (result != 0 && error != EINVAL) return SystemError("cannot sync directory", path, error);
    return absl::OkStatus();
  }
};

}  // namespace

FileSystem* FileSystem::Real() {
  static PosixFileSystem* const file_system = new PosixFileSystem();
  return file_system;
}

}  // namespace keelson
