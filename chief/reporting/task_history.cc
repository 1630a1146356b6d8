#include "chief/reporting/task_history.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/cluster/figures.h"

namespace keelson {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(30);

using Scalars = std::vector<std::pair<std::string, double>>;

void AddWorker(Task task, const v1::TrainingFigures& figures, Scalars* scalars) {
  const std::string prefix = task.ToString();
  for (const Figure& figure : TrainingFigures()) {
    const double value = figure.Number(figures);
    if (!figure.options().history() || !std::isfinite(value)) continue;
    scalars->emplace_back(absl::StrCat(prefix, "/", figure.name()), value);
  }
}

void AddServer(Task task, const ServerRates& rates, Scalars* scalars) {
  const std::string prefix = task.ToString();
  scalars->emplace_back(prefix + "/pushed_bytes_per_second", rates.pushed_bytes_per_second);
  scalars->emplace_back(prefix + "/pulled_bytes_per_second", rates.pulled_bytes_per_second);
}

}  // namespace

TaskHistory::TaskHistory(std::string model_dir, const Clock* clock, FileSystem* file_system)
    : directory_(JoinPath(model_dir, "tasks")),
      clock_(clock),
      file_system_(file_system),
      figures_(kInterval, /*patience=*/absl::ZeroDuration()) {}

absl::Status TaskHistory::Update(const CoordinatorStatus& status,
                                 const std::vector<ServerView>& servers) {
  if (!figures_.Update(clock_->Monotonic(), status.workers, servers)) return absl::OkStatus();
  return WriteEvent(status);
}

absl::Status TaskHistory::Finish(const CoordinatorStatus& status,
                                 const std::vector<ServerView>& servers) {
  if (status.totals.steps() == written_steps_) return absl::OkStatus();
  figures_.Measure(clock_->Monotonic(), status.workers, servers);
  return WriteEvent(status);
}

absl::Status TaskHistory::WriteEvent(const CoordinatorStatus& status) {
  if (figures_.workers().empty()) return absl::OkStatus();
  Scalars scalars;
  for (const auto& [task, figures] : figures_.workers()) AddWorker(task, figures, &scalars);
  for (const auto& [task, rates] : figures_.servers()) AddServer(task, rates, &scalars);
  if (events_ == nullptr) {
    ASSIGN_OR_RETURN(events_,
                     EventWriter::Create(directory_, clock_, file_system_, kDashboardEvents));
  }
  RETURN_IF_ERROR(events_->AddScalars(status.step, scalars));
  written_steps_ = status.totals.steps();
  return events_->Flush();
}

}  // namespace keelson
