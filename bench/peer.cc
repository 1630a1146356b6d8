#include "bench/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/meter.h"
#include "core/base/status_macros.h"

extern char** environ;

namespace keelson::bench {
namespace {

using nlohmann::json;

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr absl::Duration kEndTimeout = absl::Seconds(5);

struct Pipe {
  int read = -1;
  int write = -1;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  return Pipe{ends[0], ends[1]};
}

absl::StatusOr<pid_t> Spawn(const std::string& spec, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  std::string program = "/proc/self/exe", name = "ps_bench", peer = "peer", argument = spec;
  char* const arguments[] = {name.data(), peer.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::InternalError(absl::StrCat("posix_spawn: ", std::strerror(error)));
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Start(const json& spec) {
  ASSIGN_OR_RETURN(const Pipe to, MakePipe());
  ASSIGN_OR_RETURN(const Pipe from, MakePipe());
  const absl::StatusOr<pid_t> pid = Spawn(spec.dump(), to.read, from.write);
  close(to.read);
  close(from.write);
  if (!pid.ok()) {
    close(to.write);
    close(from.read);
    return pid.status();
  }
  std::unique_ptr<Peer> peer(new Peer(spec.value("role", ""), *pid, to.write, from.read));
  ASSIGN_OR_RETURN(peer->ready_, peer->Receive(kStartTimeout));
  return peer;
}

Peer::~Peer() {
  close(to_);
  // The end of its output is the end of the process.
  const double deadline = MonotonicSeconds() + absl::ToDoubleSeconds(kEndTimeout);
  absl::StatusOr<std::string> line = std::string();
  while (line.ok()) line = ReadLine(absl::Seconds(deadline - MonotonicSeconds()));
  if (absl::IsDeadlineExceeded(line.status())) kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(from_);
}

absl::Status Peer::Send(const json& command) {
  const std::string line = command.dump() + "\n";
  if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("writing to the process ", role_));
  }
  return absl::OkStatus();
}

absl::StatusOr<json> Peer::Receive(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const std::string line, ReadLine(timeout));
  json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::InternalError(
        absl::StrCat("process ", role_, ": expected an answer, found \"", line, "\""));
  }
  if (answer.contains("error")) {
    return absl::InternalError(
        absl::StrCat("process ", role_, ": ", answer["error"].get<std::string>()));
  }
  return answer;
}

absl::StatusOr<json> Peer::Call(const json& command, absl::Duration timeout) {
  RETURN_IF_ERROR(Send(command));
  return Receive(timeout);
}

absl::StatusOr<std::string> Peer::ReadLine(absl::Duration timeout) {
  const double deadline = MonotonicSeconds() + absl::ToDoubleSeconds(timeout);
  while (true) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const double left = deadline - MonotonicSeconds();
    pollfd readable{from_, POLLIN, 0};
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left * 1000) + 1) == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", role_, ": no answer in ", absl::FormatDuration(timeout)));
    }
    char buffer[65536];
    const ssize_t size = read(from_, buffer, sizeof(buffer));
    if (size <= 0) return absl::InternalError(absl::StrCat("process ", role_, " has ended"));
    unread_.append(buffer, size);
  }
}

double Peer::CpuSeconds() const {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

int64_t Peer::PeakResidentBytes() const {
  constexpr absl::string_view kName = "VmHWM:";
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  int64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, kName)) continue;
    std::sscanf(line.c_str() + kName.size(), "%" SCNd64, &kibibytes);
  }
  return kibibytes * 1024;
}

}  // namespace keelson::bench
