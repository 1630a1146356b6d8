// worker: computes gradients and pushes them to the parameter servers. In a cluster without a chief
// worker 0 leads the job too.

#include <memory>

#include "absl/synchronization/mutex.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/startup/done_watcher.h"
#include "core/startup/health.h"
#include "core/startup/role_program.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

struct Flags {
  WorkerFlags worker;
  ChiefFlags chief;
};

absl::Status RunLeadingWorker(const RoleContext& context, const Flags& flags, DeviceGroup* devices,
                              StopSignal* stop) {
  const Companion work = [&](ChiefService* chief, StopSignal* companion_stop) {
    return RunWorkerRole(context, flags.worker, devices, chief,
                         GrpcParameterClients(context, flags.worker), companion_stop);
  };
  return RunChiefRole(context, flags.chief, {work}, stop);
}

absl::Status RunLedWorker(const RoleContext& context, const Flags& flags, DeviceGroup* devices,
                          StopSignal* stop) {
  const std::unique_ptr<HealthEndpoint> health = StartHealthEndpoint(context);
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefService> chief,
                   ConnectToChief(context, flags.worker, stop));
  return RunWorkerRole(context, flags.worker, devices, chief.get(),
                       GrpcParameterClients(context, flags.worker), stop);
}

absl::Status RunWorker(const RoleContext& context, const Flags& flags, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceGroup> devices,
                   OpenWorkerDevices(flags.worker, context.cluster));
  if (context.cluster.IsChief()) return RunLeadingWorker(context, flags, devices.get(), stop);
  const DoneWatcher done(context, stop);
  return done.Explain(RunLedWorker(context, flags, devices.get(), stop));
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::Flags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kWorker;
  program.description =
      "Keelson's worker: computes gradients on batches that the chief hands out, and pushes them "
      "to the parameter servers. In a cluster without a chief, worker 0 leads the job too.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddWorkerFlags(app, &flags.worker);
    keelson::AddChiefFlags(app, &flags.chief);
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunWorker(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
