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

// Thread-safe except Poll, which one thread calls.
class RunSet {
 public:
  struct Options {
    // Shown first; empty: none. It need not exist yet when it is live.
    std::string model_dir;
    // `model_dir` is that of the process's own job.
    bool live = false;
    // The job's name, shown where `model_dir` is called "model"; empty: not known.
    std::string job_name;
    // Run::Options::config_text of `model_dir`.
    std::string config_text;
    // Run::Options::script of `model_dir`.
    ScriptModel* script = nullptr;
    // As in the flag --runs: "NAME=DIR" or "DIR". A directory that is not a run contains runs: its
    // children that are runs, including later ones, are shown; a child with its run in CHILD/model
    // is the run CHILD. A directory that becomes a run later is shown from then on.
    std::vector<std::string> runs;
    FileSystem* file_system = FileSystem::Real();
    const Clock* clock = Clock::Real();
  };

  // NOT_FOUND: no such directory. INVALID_ARGUMENT: "NAME=" without a directory.
  static absl::StatusOr<std::unique_ptr<RunSet>> Create(Options options);

  // Reads new data; that of finished runs only now and then. True: there is more to read.
  bool Poll();

  // All runs, in the order in which they were found.
  std::vector<std::shared_ptr<Run>> All() const;
  // The run with this id; null: there is none.
  std::shared_ptr<Run> Find(absl::string_view id) const;

 private:
  struct Folder {
    std::string name;  // empty: none was given
    std::string path;
  };

  explicit RunSet(Options options) : options_(std::move(options)) {}

  absl::Status AddFlag(const std::string& flag);
  bool IsRun(const std::string& path) const;
  // Adds a run with an id made of `id_name`, unless the directory is known already.
  void Add(const std::string& id_name, const std::string& name, const std::string& path, bool live);
  void ScanFolders();
  void ScanFolder(const Folder& folder);
  bool Due(const Run& run);
  // Returns an unused id.
  std::string IdOf(absl::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  std::vector<Folder> folders_;
  // Used by the thread that polls.
  std::optional<absl::Duration> scanned_;
  std::map<std::string, absl::Duration> polled_;  // by id

  mutable Mutex mu_;
  std::vector<std::shared_ptr<Run>> runs_ ABSL_GUARDED_BY(mu_);
  bool full_ ABSL_GUARDED_BY(mu_) = false;  // and that was logged
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_RUN_SET_H_
