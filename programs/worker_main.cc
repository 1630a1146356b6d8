// worker: computes gradients and pushes them to the parameter servers. In a cluster without a chief
// worker 0 leads the job too, and where the configuration places variables on workers, or
// there are no servers, every worker hosts a shard.

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_waits.h"
#include "core/config/shard_layout.h"
#include "core/startup/done_watcher.h"
#include "core/startup/health.h"
#include "core/startup/role_program.h"
#include "programs/hosting_worker.h"
#include "programs/leader.h"
#include "programs/trainer.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

struct Flags {
  WorkerFlags worker;
  LeaderFlags leader;
};

absl::Status RunLedWorker(const RoleContext& context, const WorkerFlags& flags,
                          const Trainer& trainer, StopSignal* stop) {
  const DoneWatcher done(context, stop);
  const std::unique_ptr<HealthEndpoint> health = StartHealthEndpoint(context);
  return done.Explain(TrainForChief(context, flags, trainer, TrainingPlace(), stop));
}

absl::Status RunWorker(const RoleContext& context, const Flags& flags, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceGroup> devices,
                   OpenWorkerDevices(flags.worker, context.cluster));
  const Trainer trainer = TrainerOn(devices.get(), flags.worker);
  if (context.cluster.IsChief()) {
    return RunLeader(context, flags.leader, trainer, /*job=*/nullptr, stop);
  }
  const ShardLayout layout(context.config, context.cluster);
  if (layout.HomeAt(context.self).has_value()) {
    return RunHostingWorker(context, flags.worker, flags.leader.shard, trainer,
                            /*introduce=*/nullptr, stop);
  }
  return RunLedWorker(context, flags.worker, trainer, stop);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::BoundSpinning(argv);
  keelson::Flags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kWorker;
  program.description =
      "Keelson's worker: computes gradients on batches that the chief hands out, and pushes them "
      "to the parameter servers. In a cluster without a chief, worker 0 leads the job too; in one "
      "without parameter servers every worker holds a part of the model, and the program may also "
      "be the chief, which trains.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddWorkerFlags(app, &flags.worker);
    keelson::AddLeaderFlags(app, &flags.leader);
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunWorker(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
