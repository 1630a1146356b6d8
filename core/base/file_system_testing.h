// A file system in memory that fails, fills up and crashes where a test requests it.
//
// Like a real one it remembers what is durable: a file's bytes since their last Sync, a directory's
// names since its last SyncDirectory. A crash keeps that, and of the rest what Unsynced says.
#ifndef KEELSON_CORE_BASE_FILE_SYSTEM_TESTING_H_
#define KEELSON_CORE_BASE_FILE_SYSTEM_TESTING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/mutex.h"

namespace keelson {

// The bytes and names that survive a crash although they were not synced. Real systems may behave
// in any of these ways.
enum class Unsynced {
  kLost,
  kKept,
  kNamesKept,     // the names are there, the bytes are not
  kBytesKept,     // of files whose names are there
  kLastNameKept,  // the last change of names overtook those before it; bytes are lost
};

// Thread-safe. Operations are those that change something: open for append, append, sync,
// remove, rename, replace, lock, create directories, sync a directory. A fault is UNAVAILABLE
// unless said otherwise.
class MemoryFileSystem : public FileSystem {
 public:
  // Called before every operation with its name ("append", "sync", "open", "remove", "rename",
  // "replace", "lock", "create", "sync directory") and path, and before Exists with "look"; what is
  // not OK is returned, and nothing is done. NOT_FOUND for "look" makes Exists say that nothing is
  // there, as a cache may. Also after a replacement, with "replaced".
  using Fault = std::function<absl::Status(absl::string_view operation, const std::string& path)>;

  // The directory "/" exists.
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // Number of operations so far.
  int64_t operations() const;
  // The operation number `operation` (from 0, of all so far) and all after it fail; of the bytes of
  // an append the first half is written.
  void CrashAt(int64_t operation);
  bool crashed() const;
  // As after a power cut: files that are open are gone, the rest is as Unsynced says, and all
  // operations work again.
  void Restart(Unsynced unsynced);
  // Bytes of all files; an append beyond it writes what fits, then RESOURCE_EXHAUSTED.
  void SetCapacity(int64_t bytes);
  int64_t used_bytes() const;
  // The number of bytes that all readers have read so far.
  int64_t bytes_read() const { return bytes_read_.load(); }
  void SetFault(Fault fault);
  // A directory with all that is in it vanishes, durably.
  void RemoveTree(const std::string& path);
  // Puts a file there, durably; its directory exists.
  void SetContent(const std::string& path, const std::string& content);

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path,
                                                            bool truncate) override;
  absl::StatusOr<std::unique_ptr<AppendFile>> CreateExclusive(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  // The number of operations that the file system had seen, as seconds since the epoch.
  absl::StatusOr<absl::Time> ModificationTime(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  // Paths without "." and ".." are all that exist here.
  absl::StatusOr<std::string> Resolve(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::StatusOr<std::string> ReplaceIf(const std::string& path, absl::string_view version,
                                        absl::string_view content) override;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

 private:
  friend class MemoryAppendFile;
  friend class MemoryFileLock;
  struct File;
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct Directory {
    Names names;
    Names durable;
  };

  // Counts an operation, and fails if a test requested that.
  absl::Status Begin(absl::string_view operation, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, bool truncate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Directory*> DirectoryOfFile(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<File> Find(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t UsedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepLastChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AppendTo(File* file, const std::string& path, absl::string_view data);
  absl::Status SyncFile(File* file, const std::string& path);

  std::atomic<int64_t> bytes_read_{0};

  mutable Mutex mu_;
  std::map<std::string, Directory> directories_ ABSL_GUARDED_BY(mu_);
  int64_t operations_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<int64_t> crash_at_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> capacity_ ABSL_GUARDED_BY(mu_);
  // Paths of the last change of names.
  std::vector<std::string> last_change_ ABSL_GUARDED_BY(mu_);
  // The generation of open files; handles from before a restart are invalid.
  int64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  Fault fault_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> locked_ ABSL_GUARDED_BY(mu_);  // paths
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FILE_SYSTEM_TESTING_H_
