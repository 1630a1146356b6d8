// The model directory as one simulated process sees it.
#ifndef KEELSON_TESTS_SEARCH_STORAGE_H_
#define KEELSON_TESTS_SEARCH_STORAGE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/file_system.h"
#include "core/base/file_system_testing.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/network.h"

namespace keelson {

// What storage does instead of working.
enum class StorageFault {
  kNone,
  kErrs,      // about half of the operations fail
  kReadOnly,  // nothing can be changed
  kHangs,     // operations begin when the fault ends
  kLies,      // what others wrote seems to be absent, about half of the time
};

// The disk and its faults, which all processes share.
struct SimDisk {
  MemoryFileSystem files;
  // Who holds the lock of a path; the kernel frees it with the process.
  std::map<std::string, const SimProcess*> locks;
  // Processes on several machines have no locks in common.
  bool has_locks = true;
  StorageFault fault = StorageFault::kNone;
  absl::Duration fault_since;
  // When files were changed.
  std::map<std::string, absl::Time> modified;
  // Called after each change of a name.
  std::function<void(const std::string& path)> on_name_changed;
  // Called after a file was replaced by a process.
  std::function<void(const std::string& path, const SimProcess& by)> on_replaced;
  // Called after the names in a directory were made durable.
  std::function<void()> on_names_synced;
};

// Calls `at` before and after each operation: it may kill the process, which then holds no locks.
// An operation itself is not left half way.
class SimFileSystem : public FileSystem {
 public:
  // All outlive the file system.
  SimFileSystem(FiberScheduler* scheduler, SimDisk* disk, const SimProcess* process,
                std::function<void(const SimPoint&)> at)
      : scheduler_(scheduler), disk_(disk), process_(process), at_(std::move(at)) {}

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override;
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<std::string> Resolve(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                        absl::string_view content) override;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

 private:
  friend class SimAppendFile;

  // Waits out a hang; an error where the disk has one for this operation.
  absl::Status Begin(absl::string_view operation, bool changes, const std::string& path);
  bool Lies(const std::string& path);
  void NoteChange(const std::string& path) { disk_->modified[path] = scheduler_->Now(); }
  template <typename Operation>
  auto Run(absl::string_view name, Operation operation);

  FiberScheduler* const scheduler_;
  SimDisk* const disk_;
  const SimProcess* const process_;
  const std::function<void(const SimPoint&)> at_;
  std::set<std::string> written_;  // by this process
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_STORAGE_H_
