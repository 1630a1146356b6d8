#include "chief/coordination/job_reports.h"

namespace keelson {

void JobReports::SetFigures(const v1::TrainingFigures& newest) {
  MutexLock lock(&state_->mu);
  newest_ = newest;
}

std::optional<LossCurve::Point> JobReports::TakeLossPoint() {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->TakeLossPoint() : std::nullopt;
}

std::optional<LossCurve::Point> JobReports::TakeLastLossPoint() {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->TakeLastLossPoint() : std::nullopt;
}

std::map<std::string, double> JobReports::TakeLogged(int64_t end) {
  MutexLock lock(&state_->mu);
  return state_->training.has_value() ? state_->training->TakeLogged(end)
                                      : std::map<std::string, double>();
}

CoordinatorStatus JobReports::GetStatus() const {
  MutexLock lock(&state_->mu);
  CoordinatorStatus status;
  status.phase = state_->phase;
  status.error = state_->error;
  status.snapshot_step = state_->snapshots.newest_step();
  status.mode = state_->options.mode;
  status.newest = newest_;
  status.evaluated_step = state_->snapshots.evaluated_step();
  status.evaluation = state_->snapshots.evaluation();
  status.members = state_->membership.Members();
  for (Member& member : status.members) member.secret = 0;
  if (state_->training.has_value()) {
    status.missing_workers = state_->MissingWorkers();
    state_->training->FillStatus(state_->WorkersAway(), &status);
  }
  return status;
}

}  // namespace keelson
