#include "chief/reporting/task_figures.h"

#include <algorithm>

#include "core/cluster/figures.h"

namespace keelson {
namespace {

// The number of step times without a step after which a worker counts as idle.
constexpr double kLateSteps = 4;

// Evaluators report too, but never work.
bool Works(Task task) { return task.role != Role::kEvaluator; }

}  // namespace

bool TaskFigures::Update(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
                         const std::vector<ServerView>& servers) {
  SetMarks(now, workers, servers);
  if (measured_ == -absl::InfiniteDuration()) measured_ = now;
  if (now - measured_ < interval_) return false;
  Measure(now, workers, servers);
  return true;
}

void TaskFigures::SetMarks(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
                           const std::vector<ServerView>& servers) {
  for (const auto& [task, sums] : workers) {
    // Until its first step a worker waits for the job to begin.
    if (Works(task) && (sums.steps() == 0 || !worker_marks_.contains(task))) {
      worker_marks_[task] = {now, sums};
    }
  }
  for (const ServerView& state : servers) {
    const auto mark = server_marks_.find(state.task);
    if (mark == server_marks_.end() || mark->second.state.incarnation != state.incarnation) {
      server_marks_[state.task] = {now, state};
      server_rates_.erase(state.task);
    }
  }
}

void TaskFigures::Measure(absl::Duration now, const std::map<Task, v1::WorkerFigures>& workers,
                          const std::vector<ServerView>& servers) {
  SetMarks(now, workers, servers);
  measured_ = now;
  for (const auto& [task, sums] : workers) {
    if (Works(task)) MeasureWorker(now, task, sums);
  }
  for (const ServerView& state : servers) MeasureServer(now, state);
}

void TaskFigures::MeasureWorker(absl::Duration now, Task task, const v1::WorkerFigures& sums) {
  WorkerMark& mark = worker_marks_[task];
  const absl::Duration elapsed = now - mark.time;
  if (elapsed <= absl::ZeroDuration()) return;
  if (sums.steps() == mark.sums.steps() && !Still(elapsed, task)) return;
  worker_figures_[task] = FiguresBetween(mark.sums, sums, elapsed);
  // A step that comes after a long time took that time.
  if (sums.steps() > mark.sums.steps()) mark = {now, sums};
}

bool TaskFigures::Still(absl::Duration silence, Task task) const {
  const auto figures = worker_figures_.find(task);
  if (figures == worker_figures_.end()) return false;
  const double rate = figures->second.steps_per_second();
  const absl::Duration late = rate > 0 ? absl::Seconds(kLateSteps / rate) : absl::ZeroDuration();
  return silence >= std::max(patience_, late);
}

void TaskFigures::MeasureServer(absl::Duration now, const ServerView& state) {
  ServerMark& mark = server_marks_[state.task];
  const double seconds = absl::ToDoubleSeconds(now - mark.time);
  if (seconds <= 0 || state.incarnation == 0) return;
  server_rates_[state.task] = {
      static_cast<double>(state.pushed_bytes - mark.state.pushed_bytes) / seconds,
      static_cast<double>(state.pulled_bytes - mark.state.pulled_bytes) / seconds};
  mark = {now, state};
}

}  // namespace keelson
