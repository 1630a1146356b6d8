// One run: the state of a model directory, read from its files as they grow.
#ifndef KEELSON_DASHBOARD_RUNS_RUN_H_
#define KEELSON_DASHBOARD_RUNS_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "dashboard/runs/changed_file.h"
#include "dashboard/runs/evaluations.h"
#include "dashboard/runs/event_tail.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run_model.h"
#include "dashboard/runs/run_state.h"
#include "dashboard/runs/script_model.h"
#include "dashboard/runs/snapshot_table.h"
#include "dashboard/runs/time_series.h"

namespace keelson {

// The content of the files. Files that could not be read are absent, with their errors in
// `troubles`.
struct RunData {
  Json status;                    // status.json; null: none
  Json placement;                 // placement.json; null: none
  std::string placement_trouble;  // why it is null; empty: there is no file
  RunState state;
  std::optional<RunModel> model;
  std::map<int64_t, Evaluation> evaluations;
  MetricFigures metrics;  // of `evaluations`
  StoredSnapshots snapshots;
  Exports exports;
  std::set<int64_t> reports;
  // "train/loss", "eval/accuracy", "task/worker-0/steps_per_second"
  std::map<std::string, TimeSeries> series;
  std::vector<std::string> troubles;

  // Each of these grows when its part of the data has changed.
  uint64_t status_revision = 0;
  uint64_t snapshots_revision = 0;
  uint64_t series_revision = 0;
};

// Thread-safe except Poll, which one thread calls.
class Run {
 public:
  struct Options {
    std::string id;  // [A-Za-z0-9._-]+
    std::string name;
    std::string model_dir;
    bool live = false;  // of the process's own job
    // A TrainConfig as text, for as long as the directory has no train_config.textproto; may be
    // empty.
    std::string config_text;
    // The model of the process's own job, if that is a script's; null: there is none. It outlives
    // the run.
    ScriptModel* script = nullptr;
    FileSystem* file_system = FileSystem::Real();
    const Clock* clock = Clock::Real();
  };

  explicit Run(Options options);

  const std::string& id() const { return options_.id; }
  const std::string& name() const { return options_.name; }
  const std::string& model_dir() const { return options_.model_dir; }
  bool live() const { return options_.live; }
  const Clock* clock() const { return options_.clock; }
  FileSystem* file_system() const { return options_.file_system; }
  ScriptModel* script() const { return options_.script; }

  // Reads new data, a bounded part at a time. True: there is more to read.
  bool Poll();

  // `look` must not call the run.
  void Read(absl::FunctionRef<void(const RunData&)> look) const;

 private:
  using NewPoints = std::map<std::string, std::vector<SeriesPoint>, std::less<>>;

  void PollStatus();
  void PollPlacement();
  void PollModel();
  void PollSnapshots();
  void PollState();
  bool PollCurves();
  void Apply(const NewPoints& points, std::vector<Evaluation> evaluations);
  void NoteTroubles();

  const Options options_;

  // Used by the thread that polls.
  ChangedFile status_file_;
  ChangedFile placement_file_;
  ChangedFile model_file_;
  StatusAge status_age_;
  SnapshotTable snapshot_table_;
  EventTail train_events_;
  EventTail task_events_;
  EvaluationTail evaluation_tail_;
  absl::Status status_trouble_;
  absl::Status placement_trouble_;
  absl::Status model_trouble_;
  bool too_many_series_ = false;

  mutable SharedMutex mu_;
  RunData data_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_RUN_H_
