// chief: forms the job, hands out work, takes snapshots and ends it. Without a cluster it trains
// alone.

#include <memory>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/startup/role_program.h"
#include "dashboard/dashboard_flags.h"
#include "programs/single_process.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

struct Flags {
  ChiefFlags chief;
  WorkerFlags worker;
  bool chief_trains = false;
  DashboardFlags dashboard;
};

absl::Status RunChiefProgram(const RoleContext& context, const Flags& flags, StopSignal* stop) {
  if (!context.cluster.distributed) {
    LogInfo("no cluster: all roles run in this process");
    return RunSingleProcess(context, flags.chief, flags.worker, flags.dashboard, stop);
  }
  if (flags.dashboard.port.has_value()) {
    return absl::InvalidArgumentError(
        "--dashboard_port: expected no cluster, in which the evaluator serves the dashboard");
  }
  std::vector<Companion> companions;
  std::unique_ptr<DeviceGroup> devices;
  if (flags.chief_trains) {
    ASSIGN_OR_RETURN(devices, OpenWorkerDevices(flags.worker, context.cluster));
    companions.push_back([&](ChiefService* chief, StopSignal* companion_stop) {
      return RunWorkerRole(context, flags.worker, devices.get(), chief,
                           GrpcParameterClients(context, flags.worker), companion_stop);
    });
  }
  return RunChiefRole(context, flags.chief, companions, stop);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::Flags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kChief;
  program.description =
      "Keelson's chief: forms the job, hands out work, takes snapshots and ends the job. Without "
      "TF_CONFIG and host flags it runs the whole job alone in this process.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddChiefFlags(app, &flags.chief);
    keelson::AddWorkerFlags(app, &flags.worker);
    keelson::AddJobDashboardFlags(app, &flags.dashboard);
    app->add_flag("--chief_trains", flags.chief_trains, "The chief is a worker too");
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunChiefProgram(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
