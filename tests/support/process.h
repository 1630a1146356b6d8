// A program that a test runs, with its output in a file.
#ifndef KEELSON_TESTS_SUPPORT_PROCESS_H_
#define KEELSON_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace keelson {

// Not thread-safe. The child is killed with this object, and with the thread that started it.
class Process {
 public:
  struct Command {
    std::vector<std::string> argv;  // argv[0] is the path of the program
    // Replaces variables of this process's environment, which the child has otherwise; TF_CONFIG
    // is passed on only from here.
    std::map<std::string, std::string> environment;
    std::string log_path;  // standard output and standard error, overwritten
  };

  // UNAVAILABLE: the log cannot be opened, no process can be made. A program that cannot be run
  // exits with 127.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Command& command);
  ~Process();

  // The exit code, 128 + n after signal n; nothing: it runs. Does not wait.
  std::optional<int> Poll();
  // Waits at most `timeout`.
  std::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal_number);
  // Whether SIGSTOP has taken effect on its main thread.
  bool IsStopped() const;

  // The process's id, also after its end.
  pid_t pid() const { return pid_; }

  // When Poll or Wait first saw the end. Infinite future: it runs.
  absl::Time ended_at() const { return ended_at_; }
  // What it has written so far.
  std::string Log() const;

 private:
  Process(pid_t pid, std::string log_path) : pid_(pid), log_path_(std::move(log_path)) {}

  const pid_t pid_;
  const std::string log_path_;
  std::optional<int> exit_code_;
  absl::Time ended_at_ = absl::InfiniteFuture();
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_PROCESS_H_
