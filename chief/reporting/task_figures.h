// The current speed of each worker and each server.
#ifndef KEELSON_CHIEF_REPORTING_TASK_FIGURES_H_
#define KEELSON_CHIEF_REPORTING_TASK_FIGURES_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "chief/servers/server_state.h"
#include "core/cluster/task.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// Payload of gradients and values at one server.
struct ServerRates {
  double pushed_bytes_per_second = 0;
  double pulled_bytes_per_second = 0;
};

// Not thread-safe. Times are of Clock::Monotonic.
class TaskFigures {
 public:
  // Measures every `interval`. A worker that has completed no step in an interval keeps its
  // figures, and the next ones cover that time, too. When it has been idle for `patience` and for
  // four times its step time, its rates are zero and its means not a number.
  TaskFigures(absl::Duration interval, absl::Duration patience)
      : interval_(interval), patience_(patience) {}

  // Call several times per interval, with all sums since the start. Returns whether it has
  // measured.
  bool Update(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
              const std::vector<ServerView>& servers);
  // Measures the time since the last measurement now, however long it is.
  void Measure(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
               const std::vector<ServerView>& servers);

  // By task; tasks without a report so far are absent.
  const std::map<Task, v1::TrainingFigures>& workers() const { return worker_figures_; }
  const std::map<Task, ServerRates>& servers() const { return server_rates_; }

 private:
  struct WorkerMark {
    absl::Duration time;
    v1::WorkerFigures sums;
  };
  struct ServerMark {
    absl::Duration time;
    ServerView state;
  };

  void SetMarks(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
                const std::vector<ServerView>& servers);
  void MeasureWorker(absl::Duration now, Task task, const v1::WorkerFigures& sums);
  void MeasureServer(absl::Duration now, const ServerView& state);
  bool Still(absl::Duration silence, Task task) const;

  const absl::Duration interval_;
  const absl::Duration patience_;
  absl::Duration measured_ = -absl::InfiniteDuration();
  std::map<Task, WorkerMark> worker_marks_;
  std::map<Task, ServerMark> server_marks_;
  std::map<Task, v1::TrainingFigures> worker_figures_;
  std::map<Task, ServerRates> server_rates_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_TASK_FIGURES_H_
