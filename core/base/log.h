// One-line log records on standard error: "I 2026-11-20T20:15:03.120Z worker-1 text".
// LogInfo("step=", step) joins its arguments as absl::StrCat does. Thread-safe.
#ifndef KEELSON_CORE_BASE_LOG_H_
#define KEELSON_CORE_BASE_LOG_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {

enum class LogSeverity { kInfo, kWarning, kError };

// Sets the name in every record of this process, "worker-1". Call before threads are started.
void SetLogName(absl::string_view name);

// Writes one record; line breaks in `text` become " | ".
void Log(LogSeverity severity, absl::string_view text);

template <typename... Args>
void LogInfo(const Args&... args) {
  Log(LogSeverity::kInfo, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  Log(LogSeverity::kWarning, absl::StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  Log(LogSeverity::kError, absl::StrCat(args...));
}

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_LOG_H_
