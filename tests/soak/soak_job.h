// The job of a soak: its processes and links, which of them are broken, and what may
// therefore be missing at the end.
#ifndef KEELSON_TESTS_SOAK_SOAK_JOB_H_
#define KEELSON_TESTS_SOAK_SOAK_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/cluster/consistency.h"
#include "tests/soak/process_watch.h"
#include "tests/support/job.h"

namespace keelson {

// Where the variables are: on parameter servers, on three tasks that train (the chief and two
// workers), or on one server and three workers.
enum class SoakCluster { kServers, kHosts, kBoth };
std::string NameOf(SoakCluster cluster);
// Of the tasks that train.
inline constexpr int kSoakTrainers = 3;

// A chief, workers, two evaluators, and two servers, one or none. All ways to the chief are links,
// and so are those to what holds a shard, which are so slow that a worker does at most 50 steps a
// second, and 13 where they are synchronous and not all in one process. Not thread-safe.
class SoakJob {
 public:
  struct Link {
    FaultProxy* proxy;
    std::string name;
    LinkConditions healthy;
    bool of_worker_to_chief = false;
  };
  // What a file of the model directory does. The lost directory is a file at its place meanwhile.
  enum class Storage { kGood, kHangs, kErrs, kLost };

  // `config` is the text of a TrainConfig. All that is drawn comes from `seed`.
  SoakJob(SoakCluster cluster, const std::string& config, uint64_t seed);
  ~SoakJob();

  SoakCluster cluster() const { return cluster_; }
  Job& job() { return job_; }
  const std::string& model_dir() const { return job_.model_dir(); }
  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<Link>& links() const { return links_; }

  // In [low, high].
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Draw(0, static_cast<int>(from.size()) - 1)];
  }

  // Remembers what happens, for PrintLog, which also prints the ends of the tasks' logs.
  void Note(const std::string& event);
  void PrintLog() const;
  std::string EndOfLog(const Task& task) const;

  // ---- Processes.

  void StartAll() { job_.StartAll(); }
  // The task runs, nothing has stopped it, and it could be started again.
  bool CanBreak(const Task& task) const;
  bool NothingIsBroken() const { return down_.empty() && frozen_.empty() && !lost(); }
  bool NoneIsDown() const { return down_.empty(); }
  // Whether the task's newest process has read what it reads of the model directory at its start.
  bool HasStarted(const Task& task) const;
  bool AllHaveStarted() const;
  // How often the task was started again.
  int restarts(const Task& task) const;

  // From now on the task's process may end in any way; StartAgain replaces it, even if it runs.
  void TakeDown(const Task& task) { down_.insert(task); }
  void StartAgain(const Task& task);
  // The task's process stands still, and is left to the caller (Job::Abandon); the task is down.
  std::unique_ptr<Process> Abandon(const Task& task);
  void Freeze(const Task& task);
  void Thaw(const Task& task);
  // Returns the tasks whose processes have ended by themselves; they are down from now on. Fails
  // the test for exit codes other than 138, which asks to be started again (core/base/exit_code.h).
  // A job that `may_be_done` has processes that end with 0, which are left alone.
  std::vector<Task> WatchProcesses(bool may_be_done);

  // ---- The rest.

  Storage storage() const { return storage_; }
  bool lost() const { return storage_ == Storage::kLost; }
  void SetStorage(Storage storage);

  // Sets it by a call or as a user does, with keelson_ctl. False: it was not set, or nobody knows.
  bool SetMode(const ConsistencyMode& mode);

  // ---- What may be missing at the end.

  // The task crashes or loses its lease: reports of pushes may be missing, or a server's steps.
  void CountLoss(const Task& task);
  // What was counted was none: the server has lost nothing.
  void TakeBackLoss(const Task& server) { --server_losses_[server.index]; }
  void CountWorkerLosses(int count) { worker_losses_ += count; }
  bool HasLostSteps(int server) const;
  int64_t worker_losses() const { return worker_losses_; }
  // Shards that the chiefs, so far, have said to have lost steps; not on servers alone.
  std::set<int> ShardsSaidToHaveLost() const;

  const ProcessWatch& watch() const { return watch_; }

 private:
  void AddLinks();
  void AddLink(const Task& from, const Task& to);
  // Whether the task holds a shard, and can be called.
  bool Serves(const Task& task) const;
  bool SetModeByCall(const ConsistencyMode& mode);
  bool SetModeByProgram(const ConsistencyMode& mode);
  std::string HangingMarker() const { return model_dir() + ".hangs"; }
  std::string ErringMarker() const { return model_dir() + ".errs"; }
  std::string Away() const { return model_dir() + ".away"; }
  // Puts what is at Away() in its place, and it there, in one instant: who writes there makes a
  // directory that is missing.
  void ExchangeModelDirectory();

  const SoakCluster cluster_;
  const absl::Time start_;
  std::mt19937_64 random_;
  Job job_;
  std::vector<Task> tasks_;
  std::vector<Link> links_;
  std::set<Task> down_;
  std::set<Task> frozen_;
  std::map<Task, int> restarts_;
  Storage storage_ = Storage::kGood;
  std::map<int, int> server_losses_;
  int64_t worker_losses_ = 0;
  std::string chief_logs_;  // of those before the present one
  ProcessWatch watch_;
  std::vector<std::string> events_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_SOAK_JOB_H_
