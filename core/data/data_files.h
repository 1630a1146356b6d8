// Finds the files that a configuration names.
#ifndef KEELSON_CORE_DATA_DATA_FILES_H_
#define KEELSON_CORE_DATA_DATA_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"

namespace keelson {

// Paths of the files in `directory` whose names match one of `patterns` (name_pattern.h), with or
// without ".gz" or ".zst": of the first pattern by their names, then of the second, each file once.
// A file that is there plain and packed is taken plain, and one as ".gz" and ".zst" as ".gz".
// Hidden files and stored indexes are none. Without a pattern it is the only file of the directory.
// `field` is that of the patterns.
//   NOT_FOUND: no such directory, or it has no file for a pattern.
//   INVALID_ARGUMENT: without a pattern, there are several.
absl::StatusOr<std::vector<std::string>> FindDataFiles(const std::string& directory,
                                                       absl::Span<const std::string> patterns,
                                                       absl::string_view field,
                                                       FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_DATA_FILES_H_
