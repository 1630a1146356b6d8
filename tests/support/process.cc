#include "tests/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "tests/support/system_error.h"

namespace keelson {
namespace {

constexpr absl::Duration kProcessPollPause = absl::Milliseconds(10);
constexpr int kExitNotRun = 127;

std::vector<std::string> ChildEnvironment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, strcspn(*entry, "="));
    if (name != "TF_CONFIG" && !changes.contains(name)) environment.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec only async-signal-safe calls are allowed.
[[noreturn]] void RunChild(char* const* argv, char* const* environment, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitNotRun);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execve(argv[0], argv, environment);
  _exit(kExitNotRun);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const Command& command) {
  const int log = open(command.log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log < 0) return SystemError(command.log_path);
  const std::vector<std::string> environment = ChildEnvironment(command.environment);
  const std::vector<char*> argv = Pointers(command.argv);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunChild(argv.data(), envp.data(), log, parent);
  close(log);
  if (pid < 0) return SystemError("fork");
  return std::unique_ptr<Process>(new Process(pid, command.log_path));
}

Process::~Process() {
  Signal(SIGKILL);
  if (!exit_code_.has_value()) waitpid(pid_, nullptr, 0);
}

std::optional<int> Process::Poll() {
  int status = 0;
  if (!exit_code_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ended_at_ = absl::Now();
  }
  return exit_code_;
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!Poll().has_value() && absl::Now() < deadline) absl::SleepFor(kProcessPollPause);
  return exit_code_;
}

void Process::Signal(int signal_number) {
  // An ended child that was not reaped yet keeps its id, so this never hits another process.
  if (!exit_code_.has_value()) kill(pid_, signal_number);
}

bool Process::IsStopped() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  std::string id, name, state;
  file >> id >> name >> state;
  return state == "T";
}

std::string Process::Log() const { return ReadFile(log_path_).value_or(""); }

}  // namespace keelson
