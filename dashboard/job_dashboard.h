// The dashboards that a process of the evaluator serves: that of its job, or of finished runs.
#ifndef KEELSON_DASHBOARD_JOB_DASHBOARD_H_
#define KEELSON_DASHBOARD_JOB_DASHBOARD_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/startup/role_program.h"
#include "dashboard/api/actions.h"
#include "dashboard/assets.h"
#include "dashboard/dashboard.h"
#include "dashboard/dashboard_flags.h"
#include "dashboard/runs/script_model.h"

namespace keelson {

// A dashboard with the objects that it uses.
struct JobDashboard {
  std::unique_ptr<JobActions> actions;
  std::unique_ptr<Dashboard> dashboard;  // null: not wanted
};

// The dashboard of the job that the process is part of. `chief` and `script` may be null; they and
// the context's telemetry outlive the dashboard. `token`: ReadDashboardToken's. Errors of
// Dashboard::Start.
absl::StatusOr<JobDashboard> StartJobDashboard(const RoleContext& context,
                                               const DashboardFlags& flags,
                                               const std::string& token, AssetTable assets,
                                               ChiefService* chief, ScriptModel* script = nullptr);

// Shows the runs in the model directory and in flags.runs until it is stopped, then returns OK.
// INVALID_ARGUMENT: neither was given. Otherwise the errors of Dashboard::Start.
absl::Status ServeRuns(const RoleContext& context, const DashboardFlags& flags, AssetTable assets,
                       const StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_JOB_DASHBOARD_H_
