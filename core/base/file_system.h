// The file system as a dependency: what writes and reads files takes a FileSystem, tests give it
// one that fails (file_system_testing.h). Errors name the path and the system's reason: NOT_FOUND,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full), ALREADY_EXISTS, otherwise UNAVAILABLE.
#ifndef KEELSON_CORE_BASE_FILE_SYSTEM_H_
#define KEELSON_CORE_BASE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

// Appends to a file, or to anything that takes bytes in order. Not thread-safe. The destructor
// closes; what was not synced by then may be lost.
class AppendFile {
 public:
  virtual ~AppendFile() = default;

  virtual absl::Status Append(absl::string_view data) = 0;
  // Makes what was appended durable.
  virtual absl::Status Sync() = 0;
  // Sync and close; errors of the last writes surface here. The last call.
  virtual absl::Status Close() = 0;
};

// Reads parts of a file at offsets. Thread-safe. A file that is removed stays readable.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;

  // Fills `buffer` with `size` bytes from `offset`. DATA_LOSS when the file ends before.
  virtual absl::Status Read(uint64_t offset, size_t size, char* buffer) const = 0;

  // The size() bytes of the file in memory, mapped by the first call; valid as long as this. Null:
  // they cannot be mapped, so that Read alone reads them. Only for files that nobody cuts short: it
  // ends the process to read what is gone.
  virtual const char* Map() const { return nullptr; }

  // Bytes of the file when it was opened.
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 protected:
  RandomAccessFile(std::string path, uint64_t size) : path_(std::move(path)), size_(size) {}

 private:
  const std::string path_;
  const uint64_t size_;
};

// A lock on a file, until this object is destroyed or its process ends, in whatever way.
class FileLock {
 public:
  virtual ~FileLock() = default;

  // Names the locked file within the running kernel. Locks of one identity exclude each other: who
  // could take one has proof that nobody holds another.
  const std::string& identity() const { return identity_; }

 protected:
  explicit FileLock(std::string identity) : identity_(std::move(identity)) {}

 private:
  const std::string identity_;
};

// A file's content and what ReplaceIf compares. Only equality of versions means something.
struct VersionedContent {
  std::string content;
  std::string version;  // empty: the file is empty, which for ReplaceIf is as if it were absent
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates `path`, or continues it when `truncate` is false.
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                                    bool truncate) = 0;
  // Creates a file that is not there. ALREADY_EXISTS: something has that name, be it a link.
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) = 0;
  // Never waits for a writer. FAILED_PRECONDITION: it is not a regular file, but a directory, a
  // pipe, a socket or a device.
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(
      const std::string& path) = 0;
  // What cannot be looked at is an error, not absent; a link that leads nowhere is absent.
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  virtual absl::StatusOr<absl::Time> ModificationTime(const std::string& path) = 0;
  // Names (not paths) in a directory, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // The absolute path without links, "." and "..", of something that exists.
  virtual absl::StatusOr<std::string> Resolve(const std::string& path) = 0;
  // With parents; an existing directory is fine. Durable.
  virtual absl::Status CreateDirectories(const std::string& path) = 0;
  // A missing file is fine.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Replaces a file of the name `to` in one step.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // DATA_LOSS: the file has more than `max_bytes`.
  virtual absl::StatusOr<VersionedContent> ReadVersioned(const std::string& path,
                                                         uint64_t max_bytes);
  // Compare-and-swap: replaces the content of a file that has this version (empty: that is absent),
  // durably and in one step; returns the new version. Of several callers with one version, in
  // whatever processes, one succeeds (all that call at the same instant where the file system has
  // no locks). ABORTED: it has another version. UNAVAILABLE: another caller is at it; after this
  // and other errors the content may have been replaced. `content` is not empty.
  virtual absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                                absl::string_view content) = 0;
  // Takes the lock of a file, which is made if it is absent; never waits. The file is not removed
  // afterwards. ALREADY_EXISTS: another holder has it, in this process or another one.
  // UNIMPLEMENTED: the file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) = 0;
  // Makes the names in a directory durable: files created, renamed and removed there.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // The process's real file system; lives for ever.
  static FileSystem* Real();
};

// The versions of file systems that give none themselves: those of equal contents are equal.
std::string VersionOfContent(absl::string_view content);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FILE_SYSTEM_H_
