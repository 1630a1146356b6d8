// worker: computes gradients and pushes them to the parameter servers. In a cluster without a chief
// worker 0 leads the job too, and where the configuration places variables on workers, or
// there are no servers, every worker hosts a shard.

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_waits.h"
#include "core/cluster/task_proto.h"
#include "core/config/shard_layout.h"
#include "core/startup/done_watcher.h"
#include "core/startup/health.h"
#include "core/startup/role_program.h"
#include "programs/leader.h"
#include "programs/shard_host.h"
#include "worker/host_announcer.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

absl::Status TrainForChief(const RoleContext& context, const WorkerFlags& flags,
                           DeviceGroup* devices, BulkHandler* own_shard, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefService> chief, ConnectToChief(context, flags, stop));
  return RunWorkerRole(context, flags, devices, chief.get(),
                       GrpcParameterClients(context, flags, own_shard), stop);
}

absl::Status RunLedWorker(const RoleContext& context, const WorkerFlags& flags,
                          DeviceGroup* devices, StopSignal* stop) {
  const DoneWatcher done(context, stop);
  const std::unique_ptr<HealthEndpoint> health = StartHealthEndpoint(context);
  return done.Explain(TrainForChief(context, flags, devices, /*own_shard=*/nullptr, stop));
}

// What a process whose shard is served at `port` tells its leader.
v1::AnnounceHostRequest AnnouncementOf(const RoleContext& context, int port) {
  v1::AnnounceHostRequest request;
  *request.mutable_header()->mutable_task() = TaskToProto(context.self);
  request.mutable_header()->set_incarnation(context.incarnation);
  request.set_config_hash(context.config_hash);
  request.set_peer(context.peer);
  request.set_hosts(static_cast<uint32_t>(context.cluster.ShardHosts().size()));
  request.set_host(context.cluster.announced_host);
  request.set_port(static_cast<uint32_t>(port));
  return request;
}

// Registers with the leader, for as long as the result lives, a process whose shard is served at
// `port`; `known` gets its address. The leader's refusal raises `stop`. Null: the cluster lists the
// address.
absl::StatusOr<std::unique_ptr<HostAnnouncer>> Register(const WorkerFlags& flags, int port,
                                                        RoleContext* known, StopSignal* stop) {
  if (!known->cluster.peers_register()) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<ChiefService> leader, ConnectToChief(*known, flags, stop));
  ASSIGN_OR_RETURN(
      std::unique_ptr<HostAnnouncer> announcer,
      HostAnnouncer::Start(AnnouncementOf(*known, port), std::move(leader), RetryOptionsFrom(flags),
                           Clock::Real(), stop, [stop] { stop->Raise(); }));
  known->cluster.addresses(known->self.role)[known->self.index] = announcer->address();
  return announcer;
}

// Trains, and hosts a shard until the chief says that the job is over. A process that joins a job
// of fewer hosts only trains: its chief has no shard for it.
absl::Status RunHostingWorker(const RoleContext& context, const LeaderFlags& flags,
                              DeviceGroup* devices, StopSignal* stop) {
  ShardHost host(context, flags.shard);
  const StopCallback ends(host.end(), [stop] { stop->Raise(); });
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardServer> server, ShardServer::Start(context, &host));
  const DoneWatcher done(context, host.end());
  RoleContext known = context;
  const auto registered = Register(flags.worker, server->port(), &known, stop);
  absl::Status trained = registered.status();
  if (trained.ok()) trained = TrainForChief(known, flags.worker, devices, host.bulk(), stop);
  if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  if (trained.ok() && !host.called()) return trained;
  stop->Wait();
  if (registered.ok() && *registered != nullptr) RETURN_IF_ERROR((*registered)->status());
  host.Linger();
  context.telemetry->ready = false;
  if (host.finished()) return absl::OkStatus();
  return done.Explain(absl::CancelledError("by a signal"));
}

absl::Status RunWorker(const RoleContext& context, const LeaderFlags& flags, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceGroup> devices,
                   OpenWorkerDevices(flags.worker, context.cluster));
  if (context.cluster.IsChief()) return RunLeader(context, flags, devices.get(), stop);
  const ShardLayout layout(context.config, context.cluster);
  if (layout.HomeAt(context.self).has_value()) {
    return RunHostingWorker(context, flags, devices.get(), stop);
  }
  return RunLedWorker(context, flags.worker, devices.get(), stop);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::BoundSpinning(argv);
  keelson::LeaderFlags flags;
  keelson::RoleProgram program;
  program.role = keelson::Role::kWorker;
  program.description =
      "Keelson's worker: computes gradients on batches that the chief hands out, and pushes them "
      "to the parameter servers. In a cluster without a chief, worker 0 leads the job too; in one "
      "without parameter servers every worker holds a part of the model, and the program may also "
      "be the chief, which trains.";
  program.add_flags = [&](CLI::App* app) {
    keelson::AddWorkerFlags(app, &flags.worker);
    keelson::AddChiefFlags(app, &flags.chief);
    keelson::AddShardFlags(app, &flags.shard);
  };
  program.run = [&](const keelson::RoleContext& context, keelson::StopSignal* stop) {
    return keelson::RunWorker(context, flags, stop);
  };
  return keelson::RunRoleProgram(program, argc, argv);
}
