// Files as Keelson needs them: whole-file reads, durable atomic replacement, listings.
// Errors name the path and the system's reason: NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full), ALREADY_EXISTS, otherwise UNAVAILABLE.
#ifndef KEELSON_CORE_BASE_FILE_H_
#define KEELSON_CORE_BASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes beside `path` under a temporary name, syncs, renames over `path`, syncs the directory:
// a reader sees the old content or the new, also after a power cut.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// Appends to a file and makes it durable on Sync. Not thread-safe. The destructor closes.
class AppendFile {
 public:
  // Creates `path`, or continues it when `truncate` is false.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, bool truncate);
  ~AppendFile();

  absl::Status Append(absl::string_view data);
  absl::Status Sync();
  // Sync and close; errors of the last writes surface here.
  absl::Status Close();

 private:
  AppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  int fd_;
};

// Reads parts of a file at offsets. Thread-safe.
class RandomAccessFile {
 public:
  static absl::StatusOr<std::unique_ptr<RandomAccessFile>> Open(const std::string& path);
  ~RandomAccessFile();

  // Fills `buffer` with `size` bytes from `offset`. DATA_LOSS when the file ends before.
  absl::Status Read(uint64_t offset, size_t size, char* buffer) const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  RandomAccessFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  const std::string path_;
  const int fd_;
  const uint64_t size_;
};

bool FileExists(const std::string& path);
// With parents; an existing directory is fine.
absl::Status CreateDirectories(const std::string& path);
// Names (not paths) in a directory, sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
// A missing file is fine.
absl::Status RemoveFile(const std::string& path);
absl::Status RenameFile(const std::string& from, const std::string& to);
absl::Status SyncDirectory(const std::string& path);
// "a" + "b" -> "a/b"; an absolute `name` stays itself.
std::string JoinPath(absl::string_view directory, absl::string_view name);
// "a/b" -> "a"; "b" -> ".".
std::string DirectoryOf(absl::string_view path);
std::string BaseName(absl::string_view path);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FILE_H_
