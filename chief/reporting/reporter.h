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
#include "chief/coordination/coordinator.h"
#include "chief/reporting/status_file.h"
#include "chief/reporting/task_figures.h"
#include "chief/reporting/task_history.h"
#include "chief/servers/server_state.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/trouble_log.h"
#include "core/optim/learning_rate.h"
#include "core/summary/event_writer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Not thread-safe. Output that cannot be written is dropped, and logged now and then.
class Reporter {
 public:
  struct Options {
    std::string model_dir;
    LearningRateSchedule learning_rate;
    // "ps-1 at host:port" of servers that have not answered yet; asked while the job waits for
    // them. May be null. Must not block, and neither must the next two.
    std::function<std::vector<std::string>()> missing_servers = nullptr;
    // May be null.
    std::function<SnapshotFigures()> snapshots = nullptr;
    // May be null.
    std::function<std::vector<ServerView>()> servers = nullptr;
    // Task, peer and incarnation; Create fills in the rest.
    ChiefIdentity chief = {};
    // Workers and evaluators that the cluster's description names.
    std::vector<Task> expected_members = {};
    double steps_per_epoch = 0;  // 0: unknown
    // Outlives the reporter.
    FileSystem* file_system = FileSystem::Real();
  };

  // Creates the event file in the model directory, and reads a predecessor's status file there.
  // `clock` and `coordinator` outlive this.
  static absl::StatusOr<std::unique_ptr<Reporter>> Create(Options options, const Clock* clock,
                                                          Coordinator* coordinator);

  // Writes what TensorBoard shows of the run beside its curves (core/config/run_description.h);
  // errors are those of writing. Other threads may be in other calls meanwhile.
  absl::Status DescribeRun(const v1::TrainConfig& config);

  // Call some times a second. For each new point of the loss curve: one metrics line in
  // Katib's text format and the scalars loss, learning_rate, global_step/sec, examples/sec,
  // staleness, credit_wait_seconds (how long a step's messages were held back because the servers
  // allowed no more in flight), pushed_bytes/sec and pulled_bytes/sec (payload). Every half minute
  // the tasks' history (task_history.h). Twice a second status.json (status_file.h), replaced
  // atomically.
  void Update();

  // The last state, whatever the interval.
  void Finish();

 private:
  Reporter(Options options, std::unique_ptr<EventWriter> events, const Clock* clock,
           Coordinator* coordinator);

  std::vector<ServerView> Servers() const;
  void MeasureFigures(const Coordinator::Status& status);
  void WriteLossPoints(const Coordinator::Status& status);
  // Writes `points`, with the rates since the last summary.
  void WriteSummary(const std::vector<LossCurve::Point>& points, const Coordinator::Status& status);
  void WriteStatusFile(const Coordinator::Status& status, const std::vector<ServerView>& servers);

  const Options options_;
  const std::unique_ptr<EventWriter> events_;
  const Clock* const clock_;
  Coordinator* const coordinator_;

  // The sums at the last summary and at the last measurement.
  struct Mark {
    absl::Duration time;
    v1::WorkerFigures totals;
  };
  std::optional<Mark> summary_;
  std::optional<Mark> figures_;
  TaskFigures tasks_;
  TaskHistory history_;
  absl::Duration status_written_ = -absl::InfiniteDuration();
  TroubleLog event_trouble_;
  TroubleLog history_trouble_;
  TroubleLog status_trouble_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_REPORTER_H_
