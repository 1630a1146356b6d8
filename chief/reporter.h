// Tells the world how training goes: metrics lines on standard output, TensorBoard events, and
// MODEL_DIR/status.json.
#ifndef KEELSON_CHIEF_REPORTER_H_
#define KEELSON_CHIEF_REPORTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/coordinator.h"
#include "chief/snapshotter.h"
#include "chief/trouble_log.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/optim/learning_rate.h"
#include "core/summary/event_writer.h"

namespace keelson {

// Not thread-safe. What cannot be written is logged now and then, and dropped.
class Reporter {
 public:
  struct Options {
    std::string model_dir;
    LearningRateSchedule learning_rate;
    // "ps-1 at host:port" of servers that have not answered yet; asked while the job waits for
    // them. May be null. Must not block.
    std::function<std::vector<std::string>()> missing_servers;
    // May be null. Must not block.
    std::function<SnapshotFigures()> snapshots;
    // Outlives the reporter.
    FileSystem* file_system = FileSystem::Real();
  };

  // Creates the event file in the model directory. `clock` and `coordinator` outlive this.
  static absl::StatusOr<std::unique_ptr<Reporter>> Create(Options options, const Clock* clock,
                                                          Coordinator* coordinator);

  // Call some times a second. For each new point of the loss curve: one metrics line in
  // Katib's text format and the scalars loss, learning_rate, global_step/sec, examples/sec,
  // staleness, credit_wait_seconds (how long a step's messages were held back because the servers
  // allowed no more in flight), pushed_bytes/sec and pulled_bytes/sec (payload). Twice a second:
  // status.json, replaced atomically. Its fields:
  //   phase, error              as in JobStatus; "error" is empty but for FAILED
  //   mode                      as ConsistencyMode::ToString
  //   snapshot                  see SnapshotFigures: {age_seconds, write_seconds, bytes,
  //                             cut_microseconds, written, failures, error}; age_seconds is absent
  //                             while there is none
  //   step, max_steps, epoch, snapshot_step
  //   loss, steps_per_second, examples_per_second, eta_seconds, staleness, credit_wait_seconds,
  //   pushed_bytes_per_second, pulled_bytes_per_second
  //                             means of the newest interval; absent before the first
  //   step_seconds              likewise: where a step's time went, {input, pull, compute, push}
  //   members                   list of {task, peer, state, restarts}; see Member
  //   waiting_for               list of missing servers; only while WAITING_FOR_SERVERS
  void Update();

  // The last state, whatever the interval.
  void Finish();

 private:
  Reporter(Options options, std::unique_ptr<EventWriter> events, const Clock* clock,
           Coordinator* coordinator);

  void MeasureFigures(const Coordinator::Status& status);
  // `points`, with the rates since the last summary.
  void WriteSummary(const std::vector<LossCurve::Point>& points, const Coordinator::Status& status);
  void WriteStatusFile(const Coordinator::Status& status);

  const Options options_;
  const std::unique_ptr<EventWriter> events_;
  const Clock* const clock_;
  Coordinator* const coordinator_;

  // Where the last summary and the last measurement stand.
  struct Mark {
    absl::Duration time;
    WorkerReport totals;
  };
  std::optional<Mark> summary_;
  std::optional<Mark> figures_;
  absl::Duration status_written_ = -absl::InfiniteDuration();
  TroubleLog event_trouble_;
  TroubleLog status_trouble_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTER_H_
