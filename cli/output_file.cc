#include "cli/output_file.h"

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::Status CheckOutput(const std::string& path, bool force) {
  ASSIGN_OR_RETURN(const bool exists, FileSystem::Real()->Exists(path));
  if (force || !exists) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path, ": exists already; --force replaces it"));
}

}  // namespace keelson
