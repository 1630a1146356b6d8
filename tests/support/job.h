// A job of the real programs, each task a process of its own, started as an operator would.
#ifndef KEELSON_TESTS_SUPPORT_JOB_H_
#define KEELSON_TESTS_SUPPORT_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/cluster/task.h"
#include "core/rpc/credentials.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/ports.h"
#include "tests/support/process.h"

namespace keelson {

inline constexpr Task kChiefTask = {Role::kChief, 0};
inline constexpr Task kEvaluatorTask = {Role::kEvaluator, 0};
inline Task EvaluatorTask(int index) { return {Role::kEvaluator, index}; }
inline Task PsTask(int index) { return {Role::kPs, index}; }
inline Task WorkerTask(int index) { return {Role::kWorker, index}; }

// Path of a program of KEELSON_BINARY_DIR, and of a role's.
std::string ProgramPath(const std::string& name);
std::string ProgramOf(Role role);

// A command, for Job::RunBehind, that preloads storage which hangs while there is a file of the one
// name, and errs while there is one of the other, about files whose paths have `files` in them
// (faulty_storage.cc).
std::vector<std::string> BehindFaultyStorage(const std::string& files,
                                             const std::string& hanging_while,
                                             const std::string& erring_while);

// Records of severity E.
std::vector<std::string> ErrorLines(const std::string& log);

// Workers and evaluators compute with one thread each. Ends all processes that it has started when
// it goes. Not thread-safe.
class Job {
 public:
  // Where the evaluator stands: there is none, the cluster of TF_CONFIG has it, or it runs beside
  // a cluster that does not name it, as TFJob's.
  enum class Evaluator { kNone, kListed, kUnlisted };
  struct Layout {
    bool chief = true;
    int ps = 2;
    int workers = 2;
    Evaluator evaluator = Evaluator::kListed;
    int evaluators = 1;  // where there are any
  };

  // `config` is the text of the TrainConfig. Files go to a directory of their own.
  Job(const Layout& layout, const std::string& config);

  // Flags for every task, beside --config and --model_dir, and for the tasks of one role, which
  // take the places of those of the same names for every task.
  void AddFlag(const std::string& flag) { flags_.push_back(flag); }
  void AddFlag(Role role, const std::string& flag) { role_flags_[role].push_back(flag); }

  // The task is this program of KEELSON_BINARY_DIR instead of its role's, with these variables in
  // its environment.
  void UseProgram(const Task& task, const std::string& name,
                  const std::map<std::string, std::string>& environment = {});

  // Programs are started as arguments of this command, which becomes them.
  void RunBehind(const std::vector<std::string>& wrapper) { wrapper_ = wrapper; }

  // The tasks of the layout.
  std::vector<Task> TasksOf(Role role) const;

  // All flags that a task of this role is started with.
  std::vector<std::string> FlagsOf(Role role) const;

  // For calls to the job's tasks as one that belongs to it.
  Credentials MemberCredentials(absl::string_view role) const;

  // The file with the token of those who belong to the job.
  std::string TokenPath() const;

  const std::string& model_dir() const { return model_dir_; }
  std::string Address(const Task& task) const;
  // The way of one task to another, which the former takes from its next start on. Owned by the
  // job.
  FaultProxy& Link(const Task& from, const Task& to);
  // TF_CONFIG of the task, the whole cluster listed; others at the ends of its links, if any.
  std::string TfConfig(const Task& task) const;

  // Starts the task, or starts it again (with another log file). `tf_config` replaces TfConfig; an
  // empty text leaves the variable out.
  void Start(const Task& task, const std::vector<std::string>& flags = {},
             const std::optional<std::string>& tf_config = std::nullopt);
  // Servers and chief first; then workers and evaluator.
  void StartAll();

  // Leaves the running process of a task to the caller, as when the task's machine is cut off and
  // the task is given to another one: the next start of the task listens on a port that was never
  // used before, and the links to the task, whose connections are reset, lead there.
  std::unique_ptr<Process> Abandon(const Task& task);

  // The process of the last start.
  Process& process(const Task& task) { return *processes_.at(task); }
  std::string Log(const Task& task) const { return processes_.at(task)->Log(); }

  // kill -9; returns when the process has ended. Returns when it was killed.
  absl::Time Kill(const Task& task);

  // Waits until all started tasks have ended; kills those that run after `hang_limit`. Fails the
  // test for each that did not exit with 0, with the end of its log.
  void ExpectAllDone(absl::Duration hang_limit = absl::Seconds(120));
  // The same for the job's tasks but for those that were killed for good.
  void ExpectAllDoneBut(const std::vector<Task>& killed,
                        absl::Duration hang_limit = absl::Seconds(120));
  // The same for one task and code.
  void ExpectExit(const Task& task, int code, absl::Duration hang_limit = absl::Seconds(60));

  // Waits until the leader has reported a step of at least `step`. Fails the test after 60 s.
  void WaitForStep(const Task& leader, int64_t step);
  // Waits until the task's log has the text this many times. Fails the test after 60 s.
  void WaitForLog(const Task& task, const std::string& text, int times = 1);

  // Seconds from the leader's report of `step` to the end of the last process.
  double SecondsFromStepToEnd(const Task& leader, int64_t step) const;

 private:
  int Port(const Task& task) const;
  std::string EndOfLog(const Task& task) const;

  const Layout layout_;
  const std::string directory_;
  const std::string model_dir_;
  const ReservedPorts ports_;
  std::vector<std::string> wrapper_;
  std::vector<std::string> flags_;
  std::map<Role, std::vector<std::string>> role_flags_;
  struct Program {
    std::string path;
    std::map<std::string, std::string> environment;
  };
  std::map<Task, Program> programs_;  // that are not their role's
  std::map<std::pair<Task, Task>, std::unique_ptr<FaultProxy>> links_;
  std::map<Task, std::unique_ptr<ReservedPorts>> moved_;  // where a task is that was abandoned
  std::map<Task, std::unique_ptr<Process>> processes_;
  int starts_ = 0;
};

// The highest step of the metrics lines in a leader's log, and that of the first line; -1: none.
int64_t LastReportedStep(const std::string& log);
int64_t FirstReportedStep(const std::string& log);

// Polls: processes can only be watched from outside. False after `limit`.
bool WaitUntil(const std::function<bool()>& condition, absl::Duration limit);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_JOB_H_
