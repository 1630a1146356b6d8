#include "core/base/posix_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/posix_file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// A file that is replaced between its opening and its locking is opened again, this often.
constexpr int kAttempts = 10;
constexpr uint64_t kMaxContentBytes = uint64_t{16} << 20;
constexpr int kLockedFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kReadOnlyFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

absl::Status OtherVersion(const std::string& path) {
  return absl::AbortedError(absl::StrCat(path, ": another process has replaced it"));
}

absl::Status Contended(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": another process is replacing it"));
}

absl::Status Locked(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, ": another process has locked it"));
}

absl::Status NoLocks(const std::string& path) {
  return absl::UnimplementedError(absl::StrCat(path, ": its file system has no locks"));
}

// For writing, so that network file systems lock it, too; where nothing can be written, for
// reading, if it is there.
int OpenToLock(int directory, const char* name) {
  const int writable = openat(directory, name, kLockedFlags | O_CREAT, kNewFileMode);
  if (writable >= 0 || (errno != EROFS && errno != EACCES)) return writable;
  const int error = errno;
  const int readable = openat(directory, name, kReadOnlyFlags);
  if (readable < 0) errno = error;
  return readable;
}

enum class Outcome { kLocked, kHeld, kNoLocks };

absl::StatusOr<Outcome> Lock(const OwnedDescriptor& file, const std::string& path) {
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Outcome::kLocked;
  switch (errno) {
    case EWOULDBLOCK:
      return Outcome::kHeld;
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL:
    case EBADF:  // a network file system locks only what is open for writing
      return Outcome::kNoLocks;
    default:
      return SystemError("cannot lock", path, errno);
  }
}

// Whether an open file still is the file of this name.
bool IsNamed(const OwnedDescriptor& file, int directory, const std::string& name) {
  struct stat named;
  struct stat opened;
  return fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(file.get(), &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

// Names the file within this kernel.
std::string IdentityOf(const OwnedDescriptor& file) {
  struct stat info = {};
  fstat(file.get(), &info);
  return absl::StrCat(info.st_dev, ":", info.st_ino);
}

class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(OwnedDescriptor file)
      : FileLock(IdentityOf(file)), file_(std::move(file)) {}

 private:
  const OwnedDescriptor file_;
};

absl::StatusOr<std::string> ContentOf(const OwnedDescriptor& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> reader,
                   ReadFrom(fcntl(file.get(), F_DUPFD_CLOEXEC, 0), path));
  if (reader->size() > kMaxContentBytes) {
    return absl::DataLossError(absl::StrCat(path, ": expected at most ", kMaxContentBytes,
                                            " bytes, found ", reader->size()));
  }
  std::string content(reader->size(), '\0');
  RETURN_IF_ERROR(reader->Read(0, content.size(), content.data()));
  return content;
}

absl::Status WriteNew(int directory, const std::string& name, const std::string& path,
                      absl::string_view content) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<AppendFile> file,
      AppendTo(openat(directory, name.c_str(), kExclusiveFlags | O_NOFOLLOW, kNewFileMode), path));
  RETURN_IF_ERROR(file->Append(content));
  return file->Close();
}

absl::Status WriteOver(int directory, const std::string& path, absl::string_view content) {
  const std::string name = BaseName(path);
  const std::string temporary = absl::StrCat(name, ".tempstate", RandomId());
  absl::Status status = WriteNew(directory, temporary, path, content);
  if (status.ok() && renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
    status = SystemError("cannot replace", path, errno);
  }
  if (!status.ok()) unlinkat(directory, temporary.c_str(), 0);
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> LockIn(int directory, const std::string& path) {
  const std::string name = BaseName(path);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    OwnedDescriptor file(OpenToLock(directory, name.c_str()));
    if (!file.open()) return SystemError("cannot open", path, errno);
    ASSIGN_OR_RETURN(const Outcome outcome, Lock(file, path));
    if (outcome == Outcome::kHeld) return Locked(path);
    if (outcome == Outcome::kNoLocks) return NoLocks(path);
    if (IsNamed(file, directory, name)) return std::make_unique<PosixFileLock>(std::move(file));
  }
  return Contended(path);
}

// The lock of the file that has the name protects the comparison and the replacement; whoever waits
// for it opens the successor afterwards. An empty file is made first where there is none, so that
// there is something to lock.
absl::StatusOr<std::string> ReplaceIn(int directory, const std::string& path,
                                      absl::string_view version, absl::string_view content) {
  const std::string name = BaseName(path);
  const int flags = kLockedFlags | (version.empty() ? O_CREAT : 0);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const OwnedDescriptor file(openat(directory, name.c_str(), flags, kNewFileMode));
    if (!file.open() && errno == ENOENT && !version.empty()) return OtherVersion(path);
    if (!file.open()) return SystemError("cannot open", path, errno);
    ASSIGN_OR_RETURN(const Outcome outcome, Lock(file, path));
    // The holder may be frozen, so nobody waits for it.
    if (outcome == Outcome::kHeld) return Contended(path);
    if (!IsNamed(file, directory, name)) continue;
    ASSIGN_OR_RETURN(const std::string found, ContentOf(file, path));
    if (VersionOfContent(found) != version) return OtherVersion(path);
    RETURN_IF_ERROR(WriteOver(directory, path, content));
    return VersionOfContent(content);
  }
  return Contended(path);
}

}  // namespace keelson
