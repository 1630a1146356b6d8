#include "core/base/posix_file.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_operation.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

class PosixAppendFile : public AppendFile {
 public:
  PosixAppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixAppendFile() override {
    if (fd_ < 0) return;
    const FileOperation operation("close", path_);
    close(fd_);
  }

  absl::Status Append(absl::string_view data) override {
    const FileOperation operation("write", path_);
    while (!data.empty()) {
      const ssize_t n = write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SystemError("cannot write", path_, errno);
      data.remove_prefix(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    const FileOperation operation("fsync", path_);
    if (fsync(fd_) != 0) return SystemError("cannot sync", path_, errno);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    RETURN_IF_ERROR(Sync());
    const FileOperation operation("close", path_);
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
  ~PosixRandomAccessFile() override {
    if (mapped_ != nullptr) munmap(mapped_, size());
    close(fd_);
  }

  absl::Status Read(uint64_t offset, size_t size, char* buffer) const override {
    const FileOperation operation("read", path());
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

  const char* Map() const override {
    MutexLock lock(&mu_);
    if (mapped_ == nullptr && size() > 0) {
      const FileOperation operation("map", path());
      void* const mapped = mmap(nullptr, size(), PROT_READ, MAP_SHARED, fd_, 0);
      if (mapped != MAP_FAILED) mapped_ = mapped;
    }
    return static_cast<const char*>(mapped_);
  }

 private:
  const int fd_;
  mutable Mutex mu_;
  mutable void* mapped_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// The error for a pipe, a device or a directory.
absl::Status NotRegular(absl::string_view path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
}

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  const int error = errno;
  if (open()) close(fd_);
  errno = error;
}

absl::Status SystemError(absl::string_view what, absl::string_view path, int error) {
  const std::string text = absl::StrCat(what, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // a link where none is followed
    case EXDEV:  // a path that leaves its directory
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

absl::StatusOr<std::unique_ptr<AppendFile>> AppendTo(int fd, const std::string& path) {
  if (fd < 0) return SystemError("cannot open for writing", path, errno);
  return std::make_unique<PosixAppendFile>(path, fd);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> ReadFrom(int fd, const std::string& path) {
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

absl::StatusOr<std::vector<std::string>> NamesIn(int fd, const std::string& path) {
  DIR* directory = fd < 0 ? nullptr : fdopendir(fd);
  if (directory == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return SystemError("cannot list", path, error);
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status SyncOpened(int fd, const std::string& path) {
  if (fd < 0) return SystemError("cannot open directory", path, errno);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  // Some network file systems cannot sync directories; their renames are durable by themselves.
  if (result != 0 && error != EINVAL) return SystemError("cannot sync directory", path, error);
  return absl::OkStatus();
}

}  // namespace keelson
