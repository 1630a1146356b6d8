// A file system on which operations fail on purpose.
#ifndef KEELSON_CORE_BASE_FAILING_FILE_SYSTEM_TESTING_H_
#define KEELSON_CORE_BASE_FAILING_FILE_SYSTEM_TESTING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"

namespace keelson {

// The real file system, in which modifying operations fail from a given one on.
class FailingFileSystem : public FileSystem {
 public:
  // `operation` counts from 0, the first of those to come.
  void FailFrom(int64_t operation) {
    operations_ = 0;
    fail_from_ = operation;
  }
  bool has_failed() const { return operations_ > fail_from_; }

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override {
    const absl::Status status = Begin(path);
    if (!status.ok()) return status;
    return Real()->OpenForAppend(path, truncate);
  }
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) override {
    const absl::Status status = Begin(path);
    if (!status.ok()) return status;
    return Real()->CreateExclusive(path);
  }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    return Real()->OpenForRead(path);
  }
  absl::StatusOr<bool> Exists(const std::string& path) override { return Real()->Exists(path); }
  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override {
    return Real()->ModificationTime(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return Real()->List(path);
  }
  absl::StatusOr<std::string> Resolve(const std::string& path) override {
    return Real()->Resolve(path);
  }
  absl::Status CreateDirectories(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->CreateDirectories(path) : status;
  }
  absl::Status Remove(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->Remove(path) : status;
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const absl::Status status = Begin(to);
    return status.ok() ? Real()->Rename(from, to) : status;
  }
  absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                        absl::string_view content) override {
    const absl::Status status = Begin(path);
    if (!status.ok()) return status;
    return Real()->ReplaceIf(path, version, content);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) override {
    const absl::Status status = Begin(path);
    if (!status.ok()) return status;
    return Real()->TryLock(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    const absl::Status status = Begin(path);
    return status.ok() ? Real()->SyncDirectory(path) : status;
  }

 private:
  absl::Status Begin(const std::string& path) {
    if (operations_++ < fail_from_) return absl::OkStatus();
    return absl::PermissionDeniedError(path + ": read-only");
  }

  int64_t operations_ = 0;
  int64_t fail_from_ = std::numeric_limits<int64_t>::max();
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FAILING_FILE_SYSTEM_TESTING_H_
