#include "core/checkpoint/presence.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<bool> IsPresent(const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(bool exists, file_system->Exists(path));
  if (exists) return true;
  // Opening the directory makes a network file system look again.
  const auto names = file_system->List(DirectoryOf(path));
  if (absl::IsNotFound(names.status())) return false;
  RETURN_IF_ERROR(names.status());
  if (!std::binary_search(names->begin(), names->end(), BaseName(path))) return false;
  ASSIGN_OR_RETURN(exists, file_system->Exists(path));
  if (exists) return true;
  return absl::UnavailableError(
      absl::StrCat(path, ": its directory names it, but it cannot be opened"));
}

}  // namespace keelson
