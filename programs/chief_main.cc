// chief: forms the job, hands out work, takes snapshots and ends it. Without a cluster it trains
// alone.

#include <memory>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_waits.h"
#include "core/startup/role_program.h"
#include "dashboard/dashboard_flags.h"
#include "programs/leader.h"
#include "programs/single_process.h"
#include "programs/trainer.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

struct Flags {
  WorkerFlags worker;
  LeaderFlags leader;
  bool chief_trains = false;
  DashboardFlags dashboard;
};

absl::Status RunChiefProgram(const RoleContext& context, const Flags& flags, StopSignal* stop) {
  const bool trains = flags.chief_trains || context.cluster.collective();
  if (context.config_from_script && (!context.cluster.distributed || trains)) {
    return absl::InvalidArgumentError(
        "--config=script: expected a cluster with parameter servers whose workers are scripts, "
        "found "
        "that this process trains (without servers the first script's agent is the chief)");
  }
  if (!context.cluster.distributed) {
    LogInfo("no cluster: all roles run in this process");
    return RunSingleProcess(context, flags.leader.chief, flags.worker, flags.dashboard, stop);
  }
  if (flags.dashboard.port.has_value()) {
    return absl::InvalidArgumentError(
        "--dashboard_port: expected no cluster, in which the evaluator serves the dashboard");
  }
  std::unique_ptr<DeviceGroup> devices;
  Trainer trainer;
  if (trains) {
    ASSIGN_OR_RETURN(devices, OpenWorkerDevices(flags.worker, context.cluster));
    trainer = TrainerOn(devices.get(), flags.worker);
  }
  return RunLeader(context, flags.leader, trainer, /*job=*/nullptr, stop);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::BoundSpinning(argv);
  keelson::Flags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kChief;
  program.takes_config_from_script = true;
  program.description =
      "Keelson's chief: forms the job, hands out work, takes snapshots and ends the job. Without "
      "TF_CONFIG and host flags it runs the whole job alone in this process.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddWorkerFlags(app, &flags.worker);
    keelson::AddLeaderFlags(app, &flags.leader);
    keelson::AddJobDashboardFlags(app, &flags.dashboard);
    app->add_flag("--chief_trains", flags.chief_trains,
                  "The chief is a worker too, as it is without this where the "
                  "cluster has no parameter servers");
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunChiefProgram(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
