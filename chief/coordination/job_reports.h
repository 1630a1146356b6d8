// How the job is doing, for people: in the chief's files, metrics and log, and to members.
#ifndef KEELSON_CHIEF_COORDINATION_JOB_REPORTS_H_
#define KEELSON_CHIEF_COORDINATION_JOB_REPORTS_H_

#include <map>
#include <optional>
#include <string>

#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/coordinator_status.h"
#include "chief/coordination/loss_curve.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class JobReports {
 public:
  // `state` outlives this.
  explicit JobReports(CoordinatorState* state) : state_(state) {}

  CoordinatorStatus GetStatus() const;

  // The figures of the newest reporting interval, which the status has from now on.
  void SetFigures(const v1::TrainingFigures& newest);

  // The next point of the loss curve, or nothing while it is not complete. See LossCurve.
  std::optional<LossCurve::Point> TakeLossPoint();
  std::optional<LossCurve::Point> TakeLastLossPoint();
  // By name the means of what scripts have logged for steps below `end`. See LoggedCurves.
  std::map<std::string, double> TakeLogged(int64_t end);

 private:
  CoordinatorState* const state_;
  v1::TrainingFigures newest_ ABSL_GUARDED_BY(state_->mu);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_JOB_REPORTS_H_
