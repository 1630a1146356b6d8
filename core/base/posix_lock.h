// Locks and compare-and-swap on files of an open directory, for file systems that open directories
// in different ways.
#ifndef KEELSON_CORE_BASE_POSIX_LOCK_H_
#define KEELSON_CORE_BASE_POSIX_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// FileSystem::TryLock and FileSystem::ReplaceIf, without making the new name durable. `directory`
// is a descriptor of the directory in which the last component of `path` is; it stays open.
absl::StatusOr<std::unique_ptr<FileLock>> LockIn(int directory, const std::string& path);
absl::StatusOr<std::string> ReplaceIn(int directory, const std::string& path,
                                      absl::string_view version, absl::string_view content);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_POSIX_LOCK_H_
