// All runs that a dashboard shows: this evaluator's own, and those of --runs.
#ifndef KEELSON_DASHBOARD_RUNS_RUN_SET_H_
#define KEELSON_DASHBOARD_RUNS_RUN_SET_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe but for Poll, which one thread calls.
class RunSet {
 public:
  struct Options {
    // Shown first; empty: none. It need not exist yet when it is live.
    std::string model_dir;
    // `model_dir` is of the process's own job.
    bool live = false;
    // The job's name, shown where `model_dir` is called "model"; empty: not known.
    std::string job_name;
    // Run::Options::config_text of `model_dir`.
    std::string config_text;
    // As in the flag --runs: "NAME=DIR" or "DIR". A directory that is no run is one of runs: its
    // children that are runs count, also those that come later; a child that has its run in
    // CHILD/model is the run CHILD. One that becomes a run itself later counts from then on.
    std::vector<std::string> runs;
    FileSystem* file_system = FileSystem::Real();
    const Clock* clock = Clock::Real();
  };

  // NOT_FOUND: no such directory. INVALID_ARGUMENT: "NAME=" without a directory.
  static absl::StatusOr<std::unique_ptr<RunSet>> Create(Options options);

  // Reads what is new: of a run that is over only now and then. True: there is more to read.
  bool Poll();

  // In the order in which they came.
  std::vector<std::shared_ptr<Run>> All() const;
  // Null: there is none of this id.
  std::shared_ptr<Run> Find(absl::string_view id) const;

 private:
  struct Folder {
    std::string name;  // empty: none was given
    std::string path;
  };

  explicit RunSet(Options options) : options_(std::move(options)) {}

  absl::Status AddFlag(const std::string& flag);
  bool IsRun(const std::string& path) const;
  // Its id comes of `id_name`. A directory that is known already is left out.
  void Add(const std::string& id_name, const std::string& name, const std::string& path, bool live);
  void ScanFolders();
  void ScanFolder(const Folder& folder);
  bool Due(const Run& run);
  // Unused so far.
  std::string IdOf(absl::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  std::vector<Folder> folders_;
  // Of the thread that polls.
  std::optional<absl::Duration> scanned_;
  std::map<std::string, absl::Duration> polled_;  // by id

  mutable Mutex mu_;
  std::vector<std::shared_ptr<Run>> runs_ ABSL_GUARDED_BY(mu_);
  bool full_ ABSL_GUARDED_BY(mu_) = false;  // and that was said
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_RUN_SET_H_
