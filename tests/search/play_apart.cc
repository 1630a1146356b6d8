#include "tests/search/play_apart.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace keelson {
namespace {

// Of real time, for one schedule.
constexpr unsigned kMostSeconds = 60;

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

[[noreturn]] void PlayInChild(const Scenario& scenario, bool log, int out) {
  alarm(kMostSeconds);
  const int null = open("/dev/null", O_WRONLY);
  dup2(log ? STDERR_FILENO : null, STDOUT_FILENO);
  if (!log) dup2(null, STDERR_FILENO);
  const Verdict verdict = Play(scenario, log);
  const std::string text =
      absl::StrCat(verdict.trace, "\n", verdict.choices, "\n",
                   absl::ToInt64Nanoseconds(verdict.time), "\n", verdict.violation);
  const ssize_t written = write(out, text.data(), text.size());
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

Verdict PlayApart(const Scenario& scenario, bool log) {
  int pipes[2];
  if (pipe(pipes) != 0) return {"end: no pipe", 0, 0, {}};
  const pid_t child = fork();
  if (child == 0) PlayInChild(scenario, log, pipes[1]);
  close(pipes[1]);
  const std::vector<std::string> lines =
      absl::StrSplit(ReadAll(pipes[0]), absl::MaxSplits('\n', 3));
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Verdict verdict;
  if (lines.size() != 4) {
    verdict.violation = absl::StrCat("crash: the process ended with status ", status);
    return verdict;
  }
  int64_t nanoseconds = 0;
  const bool whole = absl::SimpleAtoi(lines[0], &verdict.trace) &&
                     absl::SimpleAtoi(lines[1], &verdict.choices) &&
                     absl::SimpleAtoi(lines[2], &nanoseconds);
  verdict.time = absl::Nanoseconds(nanoseconds);
  verdict.violation = whole ? lines[3] : "crash: no verdict";
  return verdict;
}

}  // namespace keelson
