#include "core/base/file.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status WriteDurably(const std::string& path, absl::string_view content,
                          FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, file_system->CreateExclusive(path));
  RETURN_IF_ERROR(file->Append(content));
  return file->Close();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, FileSystem* file_system) {
  return ReadBoundedFile(path, std::numeric_limits<uint64_t>::max(), file_system);
}

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, uint64_t max_bytes,
                                            FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, file_system->OpenForRead(path));
  if (file->size() > max_bytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected at most ", max_bytes, " bytes, found ", file->size()));
  }
  std::string content(file->size(), '\0');
  RETURN_IF_ERROR(file->Read(0, content.size(), content.data()));
  return content;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 FileSystem* file_system) {
  const std::string temporary = absl::StrCat(path, ".tempstate", RandomId());
  absl::Status status = WriteDurably(temporary, content, file_system);
  if (status.ok()) status = file_system->Rename(temporary, path);
  if (!status.ok()) {
    file_system->Remove(temporary).IgnoreError();
    return status;
  }
  return file_system->SyncDirectory(DirectoryOf(path));
}

bool FileExists(const std::string& path) {
  return FileSystem::Real()->Exists(path).value_or(false);
}

absl::Status CreateDirectories(const std::string& path) {
  return FileSystem::Real()->CreateDirectories(path);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  return FileSystem::Real()->List(path);
}

absl::Status RemoveFile(const std::string& path) { return FileSystem::Real()->Remove(path); }

absl::Status RenameFile(const std::string& from, const std::string& to) {
  return FileSystem::Real()->Rename(from, to);
}

absl::Status SyncDirectory(const std::string& path) {
  return FileSystem::Real()->SyncDirectory(path);
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  if (directory.back() == '/') return absl::StrCat(directory, name);
  return absl::StrCat(directory, "/", name);
}

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace keelson
