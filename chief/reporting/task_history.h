// MODEL_DIR/tasks: what each task did, over the whole job, as an event file.
#ifndef KEELSON_CHIEF_REPORTING_TASK_HISTORY_H_
#define KEELSON_CHIEF_REPORTING_TASK_HISTORY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/reporting/task_figures.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/summary/event_writer.h"

namespace keelson {

// One event of all tasks every half minute, at the job's step: for a worker
// "worker-0/steps_per_second", examples_per_second, staleness, pushed_bytes_per_second,
// pulled_bytes_per_second, input_seconds, pull_seconds, compute_seconds and push_seconds (per
// step), for a server "ps-0/pushed_bytes_per_second" and pulled_bytes_per_second. Means and rates
// over that time; what is not finite is left out. Not thread-safe.
class TaskHistory {
 public:
  // Both outlive this. The file is begun with the first event.
  TaskHistory(std::string model_dir, const Clock* clock, FileSystem* file_system);

  // Call often. Returns the error of an event that was due and was dropped.
  absl::Status Update(const CoordinatorStatus& status, const std::vector<ServerView>& servers);
  // Writes what has come since the last event.
  absl::Status Finish(const CoordinatorStatus& status, const std::vector<ServerView>& servers);

 private:
  absl::Status WriteEvent(const CoordinatorStatus& status);

  const std::string directory_;
  const Clock* const clock_;
  FileSystem* const file_system_;
  TaskFigures figures_;
  int64_t written_steps_ = 0;  // of this process, at the last event
  std::unique_ptr<EventWriter> events_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_TASK_HISTORY_H_
