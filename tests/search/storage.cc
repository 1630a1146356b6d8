#include "tests/search/storage.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kHangLook = absl::Milliseconds(20);

class SimFileLock : public FileLock {
 public:
  SimFileLock(const std::string& path, const SimProcess** holder)
      : FileLock(path), holder_(holder) {}
  ~SimFileLock() override { *holder_ = nullptr; }

 private:
  const SimProcess** const holder_;
};

}  // namespace

absl::Status SimFileSystem::Begin(absl::string_view operation, bool changes,
                                  const std::string& path) {
  at_({operation, SimPoint::When::kBefore});
  while (disk_->fault == StorageFault::kHangs) scheduler_->WaitFor(disk_, kHangLook);
  if (disk_->fault == StorageFault::kErrs && scheduler_->Chance(0.5)) {
    return absl::UnavailableError(absl::StrCat(path, ": Input/output error"));
  }
  if (disk_->fault == StorageFault::kReadOnly && changes) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": Read-only file system"));
  }
  return absl::OkStatus();
}

bool SimFileSystem::Lies(const std::string& path) {
  return disk_->fault == StorageFault::kLies && !written_.contains(path) && scheduler_->Chance(0.5);
}

template <typename Operation>
auto SimFileSystem::Run(absl::string_view name, Operation operation) {
  auto result = [&] {
    const FiberScheduler::Atomic atomic(scheduler_);
    return operation(&disk_->files);
  }();
  at_({name, SimPoint::When::kAfter});
  return result;
}

class SimAppendFile : public AppendFile {
 public:
  SimAppendFile(SimFileSystem* system, std::string path, std::unique_ptr<AppendFile> file)
      : system_(system), path_(std::move(path)), file_(std::move(file)) {}
  ~SimAppendFile() override {
    const FiberScheduler::Atomic atomic(system_->scheduler_);
    file_ = nullptr;
  }

  absl::Status Append(absl::string_view data) override {
    RETURN_IF_ERROR(system_->Begin("append", /*changes=*/true, path_));
    return system_->Run("append", [&](MemoryFileSystem*) {
      system_->NoteChange(path_);
      return file_->Append(data);
    });
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(system_->Begin("sync", /*changes=*/true, path_));
    return system_->Run("sync", [&](MemoryFileSystem*) { return file_->Sync(); });
  }
  absl::Status Close() override {
    RETURN_IF_ERROR(system_->Begin("close", /*changes=*/true, path_));
    return system_->Run("close", [&](MemoryFileSystem*) { return file_->Close(); });
  }

 private:
  SimFileSystem* const system_;
  const std::string path_;
  std::unique_ptr<AppendFile> file_;
};

absl::StatusOr<std::unique_ptr<AppendFile>> SimFileSystem::OpenForAppend(const std::string& path,
                                                                         bool truncate) {
  RETURN_IF_ERROR(Begin("open", /*changes=*/true, path));
  written_.insert(path);
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, Run("open", [&](MemoryFileSystem* files) {
                     NoteChange(path);
                     return files->OpenForAppend(path, truncate);
                   }));
  return std::make_unique<SimAppendFile>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<AppendFile>> SimFileSystem::CreateExclusive(
    const std::string& path) {
  RETURN_IF_ERROR(Begin("open", /*changes=*/true, path));
  written_.insert(path);
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, Run("open", [&](MemoryFileSystem* files) {
                     auto created = files->CreateExclusive(path);
                     if (created.ok()) NoteChange(path);
                     return created;
                   }));
  return std::make_unique<SimAppendFile>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> SimFileSystem::OpenForRead(
    const std::string& path) {
  RETURN_IF_ERROR(Begin("read", /*changes=*/false, path));
  if (Lies(path)) return absl::NotFoundError(absl::StrCat(path, ": No such file or directory"));
  return Run("read", [&](MemoryFileSystem* files) { return files->OpenForRead(path); });
}

absl::StatusOr<bool> SimFileSystem::Exists(const std::string& path) {
  RETURN_IF_ERROR(Begin("look", /*changes=*/false, path));
  if (Lies(path)) return false;
  return Run("look", [&](MemoryFileSystem* files) { return files->Exists(path); });
}

absl::StatusOr<absl::Time> SimFileSystem::ModificationTime(const std::string& path) {
  RETURN_IF_ERROR(Begin("look", /*changes=*/false, path));
  return Run("look", [&](MemoryFileSystem* files) -> absl::StatusOr<absl::Time> {
    RETURN_IF_ERROR(files->ModificationTime(path).status());
    const auto modified = disk_->modified.find(path);
    return modified == disk_->modified.end() ? absl::UnixEpoch() : modified->second;
  });
}

absl::StatusOr<std::vector<std::string>> SimFileSystem::List(const std::string& path) {
  RETURN_IF_ERROR(Begin("list", /*changes=*/false, path));
  return Run("list", [&](MemoryFileSystem* files) { return files->List(path); });
}

absl::StatusOr<std::string> SimFileSystem::Resolve(const std::string& path) {
  RETURN_IF_ERROR(Begin("look", /*changes=*/false, path));
  return Run("look", [&](MemoryFileSystem* files) { return files->Resolve(path); });
}

absl::Status SimFileSystem::CreateDirectories(const std::string& path) {
  // One that is there needs no change.
  const auto there = Run("create", [&](MemoryFileSystem* files) { return files->Exists(path); });
  RETURN_IF_ERROR(Begin("create", /*changes=*/!there.value_or(false), path));
  return Run("create", [&](MemoryFileSystem* files) { return files->CreateDirectories(path); });
}

absl::Status SimFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Begin("remove", /*changes=*/true, path));
  return Run("remove", [&](MemoryFileSystem* files) {
    absl::Status status = files->Remove(path);
    disk_->on_name_changed(path);
    return status;
  });
}

absl::Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Begin("rename", /*changes=*/true, to));
  written_.insert(to);
  return Run("rename", [&](MemoryFileSystem* files) {
    absl::Status status = files->Rename(from, to);
    disk_->modified[to] = disk_->modified[from];
    disk_->on_name_changed(to);
    return status;
  });
}

absl::StatusOr<std::string> SimFileSystem::ReplaceIf(const std::string& path,
                                                     absl::string_view version,
                                                     absl::string_view content) {
  RETURN_IF_ERROR(Begin("replace", /*changes=*/true, path));
  written_.insert(path);
  return Run("replace", [&](MemoryFileSystem* files) {
    absl::StatusOr<std::string> result = files->ReplaceIf(path, version, content);
    NoteChange(path);
    if (result.ok()) disk_->on_replaced(path, *process_);
    disk_->on_name_changed(path);
    return result;
  });
}

absl::StatusOr<std::unique_ptr<FileLock>> SimFileSystem::TryLock(const std::string& path) {
  // One that is there is opened for reading where nothing can be written.
  RETURN_IF_ERROR(Begin("lock", /*changes=*/!disk_->locks.contains(path), path));
  const SimProcess*& holder = disk_->locks[path];
  if (!disk_->has_locks) return absl::UnimplementedError(absl::StrCat(path, ": no locks"));
  if (holder != nullptr && holder->alive) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": locked"));
  }
  holder = process_;
  return std::make_unique<SimFileLock>(path, &holder);
}

absl::Status SimFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Begin("sync directory", /*changes=*/true, path));
  return Run("sync directory", [&](MemoryFileSystem* files) {
    const absl::Status status = files->SyncDirectory(path);
    if (status.ok()) disk_->on_names_synced();
    return status;
  });
}

}  // namespace keelson
