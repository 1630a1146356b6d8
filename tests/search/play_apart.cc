#include "tests/search/play_apart.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
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

// The two standard streams, which return to what they were.
class Silence {
 public:
  Silence() : out_(dup(STDOUT_FILENO)), error_(dup(STDERR_FILENO)) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
  }
  ~Silence() {
    Restore(out_, STDOUT_FILENO);
    Restore(error_, STDERR_FILENO);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  static void Restore(int from, int to) {
    dup2(from, to);
    close(from);
  }

  const int out_;
  const int error_;
};

// Libraries link, parse and cache much at their first use.
void WarmUp() {
  static const bool warm = [] {
    std::fflush(nullptr);
    const Silence silence;
    Play(MakeScenario(0, /*faults=*/0), /*log=*/false);
    return true;
  }();
  static_cast<void>(warm);
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

ApartPlay::ApartPlay(const Scenario& scenario, bool log) {
  WarmUp();
  int pipes[2];
  if (pipe(pipes) != 0) return;
  out_ = pipes[0];
  child_ = fork();
  if (child_ == 0) PlayInChild(scenario, log, pipes[1]);
  close(pipes[1]);
}

ApartPlay::~ApartPlay() {
  if (out_ >= 0) close(out_);
}

Verdict ApartPlay::Wait() {
  if (child_ < 0) return {"crash: no process", 0, 0, {}};
  const std::vector<std::string> lines = absl::StrSplit(ReadAll(out_), absl::MaxSplits('\n', 3));
  int status = 0;
  waitpid(child_, &status, 0);
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

Verdict PlayApart(const Scenario& scenario, bool log) { return ApartPlay(scenario, log).Wait(); }

}  // namespace keelson
