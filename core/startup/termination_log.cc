#include "core/startup/termination_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/log.h"

namespace keelson {
namespace {

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

absl::string_view BeginningOf(absl::string_view text) {
  if (text.size() <= kMaxTerminationBytes) return text;
  size_t end = kMaxTerminationBytes;
  while (end > 0 && ContinuesCharacter(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

void WriteTerminationLog(const std::string& path, absl::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return;
  const absl::string_view message = BeginningOf(text);
  if (fd < 0 || write(fd, message.data(), message.size()) < 0) {
    LogWarning("--termination_log: ", path, ": ", strerror(errno));
  }
  if (fd >= 0) close(fd);
}

}  // namespace keelson
