// Small files that others replace, and files that others add to, as they change.
#ifndef KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_
#define KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"

namespace keelson {

// Tells the content of a file whenever that is another one. Not thread-safe.
class ChangedFile {
 public:
  ChangedFile(FileSystem* file_system, std::string path, uint64_t max_bytes)
      : file_system_(file_system), path_(std::move(path)), max_bytes_(max_bytes) {}

  // nullopt: nothing has changed. Otherwise the new content, or why there is none: NOT_FOUND (only
  // when it had been there, or at first), the errors of ReadBoundedFile (file.h).
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

// Reads what is added to a file. Not thread-safe.
class FileTail {
 public:
  FileTail(FileSystem* file_system, std::string path)
      : file_system_(file_system), path_(std::move(path)) {}

  // Adds at most `max_bytes` that follow what was read to pending(). False: there are no more. A
  // file that has become shorter is read anew: Restart. Errors as file_system.h.
  absl::StatusOr<bool> Read(size_t max_bytes);
  // From the beginning.
  void Restart();
  // Reads pending() again, next time.
  void ReadAgain();

  // What was read and not consumed yet.
  const std::string& pending() const { return pending_; }
  // The first so many bytes of pending() are done with.
  void Consume(size_t bytes) { pending_.erase(0, bytes); }
  // Of pending()'s first byte in the file.
  uint64_t position() const { return offset_ - pending_.size(); }

  const std::string& path() const { return path_; }

 private:
  FileSystem* const file_system_;
  const std::string path_;
  uint64_t offset_ = 0;  // of what is to be read next
  std::string pending_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_CHANGED_FILE_H_
