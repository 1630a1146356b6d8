// Files that commands write.
#ifndef KEELSON_CLI_OUTPUT_FILE_H_
#define KEELSON_CLI_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace keelson {

// ALREADY_EXISTS: there is such a file, and `force` does not allow its being replaced. Errors of
// FileSystem::Exists.
absl::Status CheckOutput(const std::string& path, bool force);

}  // namespace keelson

#endif  // KEELSON_CLI_OUTPUT_FILE_H_
