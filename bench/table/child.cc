#include "bench/table/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace keelson::bench {
namespace {

void WriteAll(int fd, const std::string& text) {
  for (size_t written = 0; written < text.size();) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += static_cast<size_t>(n);
  }
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

absl::StatusOr<nlohmann::json> RunInChild(const std::function<nlohmann::json()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    WriteAll(ends[1], measure().dump());
    _exit(0);
  }
  close(ends[1]);
  const std::string text = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  nlohmann::json result = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (status == 0 && !result.is_discarded()) return result;
  return absl::InternalError(
      WIFSIGNALED(status)
          ? absl::StrCat("a measurement was ended by signal ", WTERMSIG(status))
          : absl::StrCat("a measurement ended with ", WEXITSTATUS(status), " and no result"));
}

}  // namespace keelson::bench
