// Files in one call: whole-file reads, durable atomic replacement, and the names of paths.
// Errors are those of file_system.h.
#ifndef KEELSON_CORE_BASE_FILE_H_
#define KEELSON_CORE_BASE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     FileSystem* file_system = FileSystem::Real());

// Reads a file whose size is not trusted. DATA_LOSS, before anything is read: it is larger than
// `max_bytes`.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, uint64_t max_bytes,
                                            FileSystem* file_system = FileSystem::Real());

// Writes beside `path` under a temporary name ("….tempstate<random>"), syncs, renames over `path`,
// syncs the directory: a reader sees the old content or the new, also after a power cut.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 FileSystem* file_system = FileSystem::Real());

// Whether a file exists in the real file system, for those to whom one that cannot be looked at is
// absent.
bool FileExists(const std::string& path);
absl::Status CreateDirectories(const std::string& path);
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
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
