// evaluator: scores every snapshot of the job on the evaluation records.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_waits.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/serving/prediction_server.h"
#include "core/startup/health.h"
#include "core/startup/job_access.h"
#include "core/startup/role_program.h"
#include "dashboard/assets.h"
#include "dashboard/dashboard_flags.h"
#include "dashboard/job_dashboard.h"
#include "evaluator/evaluator_role.h"

namespace keelson {
namespace {

absl::Status RunEvaluator(const RoleContext& context, const EvaluatorFlags& flags,
                          StopSignal* stop) {
  const std::unique_ptr<HealthEndpoint> health = StartHealthEndpoint(context);
  DashboardParts parts;
  parts.assets = EmbeddedDashboardAssets();
  if (flags.dashboard.serve_only) {
    ASSIGN_OR_RETURN(const std::unique_ptr<PredictionServer> predictions,
                     StartServing(context, flags.serving));
    return ServeRuns(context, flags.dashboard, std::move(parts.assets), stop);
  }
  ASSIGN_OR_RETURN(parts.token, ReadDashboardToken(flags.dashboard));
  std::unique_ptr<ChiefService> chief;
  const std::optional<std::string> address = context.cluster.ChiefAddress();
  if (address.has_value()) {
    chief = ConnectChiefService(*address, CredentialsOf(context, Role::kEvaluator, parts.token));
  } else {
    LogInfo("no chief is known: watching the model directory only");
  }
  return RunEvaluatorRole(context, flags, chief.get(), stop, std::move(parts));
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::BoundSpinning(argv);
  keelson::EvaluatorFlags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kEvaluator;
  program.description =
      "Keelson's evaluator: scores every snapshot in the model directory on the evaluation "
      "records, and serves the dashboard. Ends when the job is over and its final snapshot is "
      "scored.";
  program.add_flags = [&](CLI::App* app) { keelson::AddEvaluatorFlags(app, &flags); };
  program.outside_job = [&] { return flags.dashboard.serve_only || flags.directory_only; };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunEvaluator(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
