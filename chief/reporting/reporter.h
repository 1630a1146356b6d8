// Reports how training goes: metrics lines on standard output, TensorBoard events, and
// MODEL_DIR/status.json.
#ifndef KEELSON_CHIEF_REPORTING_REPORTER_H_
#define KEELSON_CHIEF_REPORTING_REPORTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/coordination/job_reports.h"
#include "chief/reporting/status_file.h"
#include "chief/reporting/task_figures.h"
#include "chief/reporting/task_history.h"
#include "chief/servers/server_state.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/trouble_log.h"
#include "core/summary/event_writer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Not thread-safe. Output that cannot be written is dropped, and logged now and then.
class Reporter {
 public:
  struct Options {
    std::string model_dir;
    // The rate at a step, from 0, as the servers compute it. Must not block, and neither must the
    // next ones.
    std::function<double(int64_t step)> learning_rate;
    // "ps-1 at host:port" of servers that have not answered yet; asked while the job waits for
    // them. May be null.
    std::function<std::vector<std::string>()> missing_servers = nullptr;
    // May be null.
    std::function<SnapshotFigures()> snapshots = nullptr;
    // May be null.
    std::function<std::vector<ServerView>()> servers = nullptr;
    // Task and peer; Create fills in the rest.
    ChiefIdentity chief = {};
    // Workers and evaluators that the cluster's description names.
    std::vector<Task> expected_members = {};
    // 0: unknown.
    double batches_per_epoch = 0;
    // Outlives the reporter.
    FileSystem* file_system = FileSystem::Real();
  };

  // Reads a predecessor's status file in the model directory; the first event makes the event file
  // there. `clock` and `reports` outlive this.
  static std::unique_ptr<Reporter> Create(Options options, const Clock* clock, JobReports* reports);

  // Writes what TensorBoard shows of the run beside its curves (core/config/run_description.h);
  // errors are those of writing. Other threads may be in other calls meanwhile.
  absl::Status DescribeRun(const v1::TrainConfig& config);

  // Call some times a second. For each new point of the loss curve: one metrics line in
  // Katib's text format and the scalars loss, learning_rate, speed/steps_per_second,
  // speed/examples_per_second, exchange/staleness, exchange/credit_wait_seconds (how long a step's
  // messages were held back because the servers allowed no more in flight),
  // exchange/pushed_bytes_per_second and exchange/pulled_bytes_per_second (payload); what was not
  // measured since the last point is left out. Likewise the means of what scripts have logged, by
  // the scripts' names; the metrics line has those without blanks. Where training goes on from an
  // earlier step, readers are told to drop the points beyond it. Every two seconds the histograms
  // that a worker has handed over (core/summary/event_handover.h) are moved into the event file.
  // For each evaluation a metrics line, "step=1000 eval_accuracy=0.98 eval_loss=0.06". Every half
  // minute the tasks' history (task_history.h). Twice a second status.json (status_file.h),
  // replaced atomically.
  void Update();

  // The last state, whatever the interval, and how the run ended if it did.
  void Finish();

 private:
  Reporter(Options options, std::unique_ptr<EventWriter> events, const Clock* clock,
           JobReports* reports);

  std::vector<ServerView> Servers() const;
  // Begins to measure. The first time, readers of the events are told where training starts.
  void BeginMeasuring(const CoordinatorStatus& status);
  void TakeHistograms();
  void WriteEnd(const CoordinatorStatus& status);
  void MeasureFigures(const CoordinatorStatus& status);
  void WriteLossPoints(const CoordinatorStatus& status);
  // Writes `points`, with the rates since the last summary.
  void WriteSummary(const std::vector<LossCurve::Point>& points, const CoordinatorStatus& status);
  void PrintNewEvaluation(const CoordinatorStatus& status);
  void WriteStatusFile(const CoordinatorStatus& status, const std::vector<ServerView>& servers);

  const Options options_;
  const std::unique_ptr<EventWriter> events_;
  const Clock* const clock_;
  JobReports* const reports_;

  // The job's step, and the sums of its workers, at the last summary and at the last measurement.
  struct Mark {
    absl::Duration time;
    int64_t step = 0;
    v1::WorkerFigures totals;
  };
  // Steps have been done since, by the job and its workers.
  static bool Advanced(const Mark& mark, const CoordinatorStatus& status);
  // Returns the figures of the time since `mark`, which is not now. A synchronous step of the job
  // is several of its workers' steps, and counts once.
  v1::TrainingFigures FiguresSince(const Mark& mark, const CoordinatorStatus& status) const;

  std::optional<Mark> summary_;
  std::optional<Mark> figures_;
  int64_t printed_evaluation_ = -1;  // its step; -1: none
  TaskFigures tasks_;
  TaskHistory history_;
  absl::Duration status_written_ = -absl::InfiniteDuration();
  absl::Duration histograms_taken_ = -absl::InfiniteDuration();
  bool end_written_ = false;
  TroubleLog event_trouble_;
  TroubleLog histogram_trouble_;
  TroubleLog history_trouble_;
  TroubleLog status_trouble_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_REPORTER_H_
