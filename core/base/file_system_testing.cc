#include "core/base/file_system_testing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {

// Shared by the names and the open handles of the file. Guarded by the file system's mutex.
struct MemoryFileSystem::File {
  std::string bytes;
  std::string durable;
  int64_t changed = 0;
  int64_t generation = 0;
};

namespace {

absl::Status NotFound(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("cannot open ", path, ": No such file or directory"));
}

class MemoryRandomAccessFile : public RandomAccessFile {
 public:
  MemoryRandomAccessFile(const std::string& path, std::string bytes,
                         std::atomic<int64_t>* bytes_read)
      : RandomAccessFile(path, bytes.size()), bytes_(std::move(bytes)), bytes_read_(bytes_read) {}

  absl::Status Read(uint64_t offset, size_t size, char* buffer) const override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return absl::DataLossError(absl::StrCat(path(), ": ends at byte ", bytes_.size()));
    }
    std::copy_n(bytes_.data() + offset, size, buffer);
    bytes_read_->fetch_add(static_cast<int64_t>(size));
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
  std::atomic<int64_t>* const bytes_read_;
};

}  // namespace

class MemoryAppendFile : public AppendFile {
 public:
  MemoryAppendFile(MemoryFileSystem* file_system, std::string path,
                   std::shared_ptr<MemoryFileSystem::File> file)
      : file_system_(file_system), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view data) override {
    return file_system_->AppendTo(file_.get(), path_, data);
  }
  absl::Status Sync() override { return file_system_->SyncFile(file_.get(), path_); }
  absl::Status Close() override { return Sync(); }

 private:
  MemoryFileSystem* const file_system_;
  const std::string path_;
  const std::shared_ptr<MemoryFileSystem::File> file_;
};

class MemoryFileLock : public FileLock {
 public:
  MemoryFileLock(MemoryFileSystem* file_system, const std::string& path)
      : FileLock(path), file_system_(file_system) {}
  ~MemoryFileLock() override {
    MutexLock lock(&file_system_->mu_);
    file_system_->locked_.erase(identity());
  }

 private:
  MemoryFileSystem* const file_system_;
};

MemoryFileSystem::MemoryFileSystem() { directories_["/"]; }
MemoryFileSystem::~MemoryFileSystem() = default;

int64_t MemoryFileSystem::operations() const {
  MutexLock lock(&mu_);
  return operations_;
}

void MemoryFileSystem::CrashAt(int64_t operation) {
  MutexLock lock(&mu_);
  crash_at_ = operation;
}

bool MemoryFileSystem::crashed() const {
  MutexLock lock(&mu_);
  return crash_at_.has_value() && operations_ > *crash_at_;
}

void MemoryFileSystem::Restart(Unsynced unsynced) {
  const bool names_kept = unsynced == Unsynced::kKept || unsynced == Unsynced::kNamesKept;
  const bool bytes_kept = unsynced == Unsynced::kKept || unsynced == Unsynced::kBytesKept;
  MutexLock lock(&mu_);
  crash_at_.reset();
  ++generation_;
  if (unsynced == Unsynced::kLastNameKept) KeepLastChange();
  for (auto& [path, directory] : directories_) {
    if (names_kept) {
      directory.durable = directory.names;
    } else {
      directory.names = directory.durable;
    }
    for (auto& [name, file] : directory.names) {
      if (bytes_kept) {
        file->durable = file->bytes;
      } else {
        file->bytes = file->durable;
      }
    }
  }
}

void MemoryFileSystem::SetCapacity(int64_t bytes) {
  MutexLock lock(&mu_);
  capacity_ = bytes;
}

int64_t MemoryFileSystem::used_bytes() const {
  MutexLock lock(&mu_);
  return UsedBytes();
}

void MemoryFileSystem::SetFault(Fault fault) {
  MutexLock lock(&mu_);
  fault_ = std::move(fault);
}

void MemoryFileSystem::RemoveTree(const std::string& path) {
  MutexLock lock(&mu_);
  for (auto it = directories_.begin(); it != directories_.end();) {
    const bool inside = it->first == path || absl::StartsWith(it->first, path + "/");
    it = inside ? directories_.erase(it) : std::next(it);
  }
}

void MemoryFileSystem::SetContent(const std::string& path, const std::string& content) {
  MutexLock lock(&mu_);
  auto file = std::make_shared<File>(File{content, content, operations_, generation_});
  Directory& directory = directories_.at(DirectoryOf(path));
  directory.names[BaseName(path)] = file;
  directory.durable[BaseName(path)] = file;
}

absl::StatusOr<std::unique_ptr<AppendFile>> MemoryFileSystem::OpenForAppend(const std::string& path,
                                                                            bool truncate) {
  MutexLock lock(&mu_);
  return Open(path, truncate);
}

absl::StatusOr<std::unique_ptr<AppendFile>> MemoryFileSystem::CreateExclusive(
    const std::string& path) {
  MutexLock lock(&mu_);
  if (directories_.count(path) > 0 || Find(path) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot open for writing ", path, ": File exists"));
  }
  return Open(path, /*truncate=*/true);
}

absl::StatusOr<std::unique_ptr<AppendFile>> MemoryFileSystem::Open(const std::string& path,
                                                                   bool truncate) {
  RETURN_IF_ERROR(Begin("open", path));
  ASSIGN_OR_RETURN(Directory * directory, DirectoryOfFile(path));
  std::shared_ptr<File>& file = directory->names[BaseName(path)];
  if (file == nullptr) {
    file = std::make_shared<File>();
    last_change_ = {path};
  }
  if (truncate) file->bytes.clear();
  file->changed = operations_;
  file->generation = generation_;
  return std::make_unique<MemoryAppendFile>(this, path, file);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::OpenForRead(
    const std::string& path) {
  MutexLock lock(&mu_);
  const std::shared_ptr<File> file = Find(path);
  if (file == nullptr) return NotFound(path);
  return std::make_unique<MemoryRandomAccessFile>(path, file->bytes, &bytes_read_);
}

absl::StatusOr<bool> MemoryFileSystem::Exists(const std::string& path) {
  MutexLock lock(&mu_);
  const absl::Status fault = fault_ == nullptr ? absl::OkStatus() : fault_("look", path);
  if (absl::IsNotFound(fault)) return false;
  RETURN_IF_ERROR(fault);
  return directories_.count(path) > 0 || Find(path) != nullptr;
}

absl::StatusOr<absl::Time> MemoryFileSystem::ModificationTime(const std::string& path) {
  MutexLock lock(&mu_);
  const std::shared_ptr<File> file = Find(path);
  if (file == nullptr) return NotFound(path);
  return absl::FromUnixSeconds(file->changed);
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(const std::string& path) {
  MutexLock lock(&mu_);
  const auto found = directories_.find(path);
  if (found == directories_.end()) return NotFound(path);
  std::vector<std::string> names;
  for (const auto& [name, file] : found->second.names) names.push_back(name);
  for (const auto& [directory, content] : directories_) {
    if (directory != path && DirectoryOf(directory) == path) names.push_back(BaseName(directory));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> MemoryFileSystem::Resolve(const std::string& path) {
  ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) return NotFound(path);
  return path;
}

absl::Status MemoryFileSystem::CreateDirectories(const std::string& path) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("create", path));
  for (std::string parent = path; parent != "/" && parent != "."; parent = DirectoryOf(parent)) {
    if (Find(parent) == nullptr) continue;
    return absl::NotFoundError(absl::StrCat("cannot create directory ", path, ": Not a directory"));
  }
  for (std::string directory = path; directory != "/" && directory != ".";
       directory = DirectoryOf(directory)) {
    directories_[directory];
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("remove", path));
  const auto directory = directories_.find(DirectoryOf(path));
  if (directory != directories_.end()) directory->second.names.erase(BaseName(path));
  last_change_ = {path};
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("rename", to));
  ASSIGN_OR_RETURN(Directory * target, DirectoryOfFile(to));
  const std::shared_ptr<File> file = Find(from);
  if (file == nullptr) return NotFound(from);
  directories_.at(DirectoryOf(from)).names.erase(BaseName(from));
  target->names[BaseName(to)] = file;
  last_change_ = {from, to};
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryFileSystem::ReplaceIf(const std::string& path,
                                                        absl::string_view version,
                                                        absl::string_view content) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("replace", path));
  ASSIGN_OR_RETURN(Directory * directory, DirectoryOfFile(path));
  const std::shared_ptr<File> old = Find(path);
  if (VersionOfContent(old == nullptr ? "" : old->bytes) != version) {
    return absl::AbortedError(absl::StrCat(path, ": another process has replaced it"));
  }
  // The old content stays until the new one has its name.
  if (capacity_.has_value() && *capacity_ - UsedBytes() < static_cast<int64_t>(content.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", path, ": No space left on device"));
  }
  const std::string bytes(content);
  const auto file = std::make_shared<File>(File{bytes, bytes, operations_, generation_});
  directory->names[BaseName(path)] = file;
  directory->durable[BaseName(path)] = file;
  if (fault_ != nullptr) RETURN_IF_ERROR(fault_("replaced", path));
  return VersionOfContent(content);
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::TryLock(const std::string& path) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("lock", path));
  RETURN_IF_ERROR(DirectoryOfFile(path).status());
  if (!locked_.insert(path).second) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another process has locked it"));
  }
  return std::make_unique<MemoryFileLock>(this, path);
}

absl::Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("sync directory", path));
  const auto directory = directories_.find(path);
  if (directory == directories_.end()) return NotFound(path);
  directory->second.durable = directory->second.names;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Begin(absl::string_view operation, const std::string& path) {
  const int64_t number = operations_++;
  if (crash_at_.has_value() && number >= *crash_at_) {
    return absl::UnavailableError(absl::StrCat("cannot ", operation, " ", path, ": crashed"));
  }
  return fault_ == nullptr ? absl::OkStatus() : fault_(operation, path);
}

absl::StatusOr<MemoryFileSystem::Directory*> MemoryFileSystem::DirectoryOfFile(
    const std::string& path) {
  const auto found = directories_.find(DirectoryOf(path));
  if (found == directories_.end()) return NotFound(path);
  return &found->second;
}

std::shared_ptr<MemoryFileSystem::File> MemoryFileSystem::Find(const std::string& path) {
  const auto directory = directories_.find(DirectoryOf(path));
  if (directory == directories_.end()) return nullptr;
  const auto file = directory->second.names.find(BaseName(path));
  return file == directory->second.names.end() ? nullptr : file->second;
}

void MemoryFileSystem::KeepLastChange() {
  for (const std::string& path : last_change_) {
    const auto directory = directories_.find(DirectoryOf(path));
    if (directory == directories_.end()) continue;
    const std::shared_ptr<File> file = Find(path);
    if (file == nullptr) {
      directory->second.durable.erase(BaseName(path));
    } else {
      directory->second.durable[BaseName(path)] = file;
    }
  }
}

int64_t MemoryFileSystem::UsedBytes() const {
  int64_t used = 0;
  for (const auto& [path, directory] : directories_) {
    for (const auto& [name, file] : directory.names)
      used += static_cast<int64_t>(file->bytes.size());
  }
  return used;
}

absl::Status MemoryFileSystem::AppendTo(File* file, const std::string& path,
                                        absl::string_view data) {
  MutexLock lock(&mu_);
  const bool torn = crash_at_.has_value() && operations_ == *crash_at_;
  const absl::Status status = Begin("append", path);
  if (file->generation != generation_) return NotFound(path);
  if (torn) file->bytes.append(data.data(), data.size() / 2);
  RETURN_IF_ERROR(status);
  size_t fits = data.size();
  if (capacity_.has_value()) {
    fits = std::min(fits, static_cast<size_t>(std::max<int64_t>(*capacity_ - UsedBytes(), 0)));
  }
  file->bytes.append(data.data(), fits);
  file->changed = operations_;
  if (fits == data.size()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", path, ": No space left on device"));
}

absl::Status MemoryFileSystem::SyncFile(File* file, const std::string& path) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(Begin("sync", path));
  if (file->generation != generation_) return NotFound(path);
  file->durable = file->bytes;
  return absl::OkStatus();
}

}  // namespace keelson
