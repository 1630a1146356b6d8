#include "programs/hosting_worker.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/cluster/task_proto.h"
#include "core/startup/done_watcher.h"
#include "worker/host_announcer.h"

namespace keelson {
namespace {

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
                                                        const Introduction& introduce,
                                                        RoleContext* known, StopSignal* stop) {
  if (!known->cluster.peers_register()) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<ChiefService> leader, ConnectToChief(*known, flags, stop));
  if (introduce != nullptr) RETURN_IF_ERROR(introduce(leader.get(), stop));
  ASSIGN_OR_RETURN(
      std::unique_ptr<HostAnnouncer> announcer,
      HostAnnouncer::Start(AnnouncementOf(*known, port), std::move(leader), RetryOptionsFrom(flags),
                           Clock::Real(), stop, [stop] { stop->Raise(); }));
  known->cluster.addresses(known->self.role)[known->self.index] = announcer->address();
  return announcer;
}

}  // namespace

absl::Status TrainForChief(const RoleContext& context, const WorkerFlags& flags,
                           const Trainer& trainer, TrainingPlace place, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefService> chief, ConnectToChief(context, flags, stop));
  place.chief = chief.get();
  return trainer(context, place, stop);
}

absl::Status RunHostingWorker(const RoleContext& context, const WorkerFlags& flags,
                              const ShardFlags& shard, const Trainer& trainer,
                              const Introduction& introduce, StopSignal* stop) {
  ShardHost host(context, shard);
  const StopCallback ends(host.end(), [stop] { stop->Raise(); });
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardServer> server, ShardServer::Start(context, &host));
  const DoneWatcher done(context, host.end());
  RoleContext known = context;
  const auto registered = Register(flags, server->port(), introduce, &known, stop);
  absl::Status trained = registered.status();
  const auto explain = [&](const absl::Status& work) {
    return absl::IsCancelled(work) && host.finished() ? absl::OkStatus() : done.Explain(work);
  };
  const TrainingPlace place = {/*chief=*/nullptr, host.bulk(), explain};
  if (trained.ok()) trained = TrainForChief(known, flags, trainer, place, stop);
  if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  if (trained.ok() && !host.called()) return trained;
  stop->Wait();
  if (registered.ok() && *registered != nullptr) RETURN_IF_ERROR((*registered)->status());
  host.Linger();
  context.telemetry->ready = false;
  if (host.finished()) return absl::OkStatus();
  return done.Explain(absl::CancelledError("by a signal"));
}

}  // namespace keelson
