// Follows small files that other processes replace, and files to which they append.
#ifndef KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_
#define KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"

namespace keelson {

// Returns the content of a file whenever it has changed. Not thread-safe.
class ChangedFile {
 public:
  ChangedFile(FileSystem* file_system, std::string path, uint64_t max_bytes)
      : file_system_(file_system), path_(std::move(path)), max_bytes_(max_bytes) {}

  // nullopt: nothing has changed. Otherwise the new content, or the reason that there is none:
  // NOT_FOUND (only when the file had existed, or at first), the errors of ReadBoundedFile
  // (file.h).
  std::optional<absl::StatusOr<std::string>> Poll();

  const std::string& path() const { return path_; }

 private:
  FileSystem* const file_system_;
  const std::string path_;
  const uint64_t max_bytes_;
  absl::Time modified_ = absl::InfinitePast();
  bool polled_ = false;
  bool found_ = false;
  bool failed_ = false;
};

// Reads the bytes that are appended to a file. Not thread-safe.
class FileTail {
 public:
  FileTail(FileSystem* file_system, std::string path)
      : file_system_(file_system), path_(std::move(path)) {}

  // Adds the next bytes, at most `max_bytes`, to pending(). False: there are no more. A file that
  // has become shorter is read again from its beginning (Restart). Errors as file_system.h.
  absl::StatusOr<bool> Read(size_t max_bytes);
  // Reads the file again from its beginning.
  void Restart();
  // Reads pending() again, next time.
  void ReadAgain();

  // The bytes that were read and not consumed yet.
  const std::string& pending() const { return pending_; }
  // Consumes the first bytes of pending().
  void Consume(size_t bytes) { pending_.erase(0, bytes); }
  // The position of pending()'s first byte in the file.
  uint64_t position() const { return offset_ - pending_.size(); }

  const std::string& path() const { return path_; }

 private:
  FileSystem* const file_system_;
  const std::string path_;
  uint64_t offset_ = 0;  // of the next byte to be read
  std::string pending_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_
