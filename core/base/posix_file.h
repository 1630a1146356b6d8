// Files and directories by their descriptors, for file systems that open them in different ways.
#ifndef KEELSON_CORE_BASE_POSIX_FILE_H_
#define KEELSON_CORE_BASE_POSIX_FILE_H_

#include <fcntl.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// Flags of open(2).
inline constexpr int kExclusiveFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
// Without O_NONBLOCK, opening a pipe blocks until a writer opens it.
inline constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
inline constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int AppendFlags(bool truncate) {
  return O_WRONLY | O_CREAT | O_CLOEXEC | (truncate ? O_TRUNC : O_APPEND);
}
// Modes of new files and directories, less the umask: snapshots and what is trained on are nobody's
// but the user's and the group's.
inline constexpr mode_t kNewFileMode = 0640;
inline constexpr mode_t kNewDirectoryMode = 0770;

// Closes its descriptor, and leaves errno as it is.
class OwnedDescriptor {
 public:
  // `fd`: as open(2) returned it; negative: there is none.
  explicit OwnedDescriptor(int fd) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(other.Release()) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedDescriptor();

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The errors of file_system.h: "cannot open /model/x: Permission denied".
absl::Status SystemError(absl::string_view what, absl::string_view path, int error);

// These take a descriptor as open(2) returned it; negative: they return the error in errno. They
// close it at their end, or with the file. `path` is for messages.
absl::StatusOr<std::unique_ptr<AppendFile>> AppendTo(int fd, const std::string& path);
absl::StatusOr<std::unique_ptr<RandomAccessFile>> ReadFrom(int fd, const std::string& path);
absl::StatusOr<std::vector<std::string>> NamesIn(int fd, const std::string& path);
absl::Status SyncOpened(int fd, const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_POSIX_FILE_H_
