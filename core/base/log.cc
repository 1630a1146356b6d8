#include "core/base/log.h"

#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace keelson {
namespace {

std::string* LogName() {
  static std::string* const name = new std::string("keelson");
  return name;
}

}  // namespace

void SetLogName(absl::string_view name) { *LogName() = std::string(name); }

void Log(LogSeverity severity, absl::string_view text) {
  constexpr absl::string_view kLetters = "IWE";
  const std::string record = absl::StrCat(
      kLetters.substr(static_cast<size_t>(severity), 1), " ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", Clock::Real()->Now(), absl::UTCTimeZone()), " ",
      *LogName(), " ", absl::StrReplaceAll(text, {{"\n", " | "}}), "\n");
  // A record is one write, so that records of threads and processes that share a file do not mix.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, record.data(), record.size());
}

}  // namespace keelson
