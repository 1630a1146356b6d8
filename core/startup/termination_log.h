// Writes a container's termination message, which Kubernetes keeps in the Pod's status.
#ifndef KEELSON_CORE_STARTUP_TERMINATION_LOG_H_
#define KEELSON_CORE_STARTUP_TERMINATION_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// Kubernetes' default path, and the largest message that it reads.
inline constexpr char kTerminationLog[] = "/dev/termination-log";
inline constexpr size_t kMaxTerminationBytes = 4096;

// Replaces the content of the file at `path` by the beginning of the text, as far as whole UTF-8
// characters fit. Does nothing where there is no such file: Kubernetes makes it. A file that cannot
// be written is logged.
void WriteTerminationLog(const std::string& path, absl::string_view text);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_TERMINATION_LOG_H_
