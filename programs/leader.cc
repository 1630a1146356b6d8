#include "programs/leader.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/config/shard_layout.h"

namespace keelson {

absl::Status RunLeader(const RoleContext& context, const LeaderFlags& flags, DeviceGroup* devices,
                       StopSignal* stop) {
  ChiefSurroundings surroundings;
  std::optional<ShardHost> host;
  if (ShardLayout(context.config, context.cluster).HomeAt(context.self).has_value()) {
    host.emplace(context, flags.shard);
    surroundings.shard =
        ChiefShard{[&host](size_t shard) { return host->control(shard); },
                   [&host](const AccessGuard* guard) { return host->MakeShell(guard); }};
  }
  BulkHandler* const own_shard = host.has_value() ? host->bulk() : nullptr;
  if (devices != nullptr) {
    surroundings.companions.push_back([&](ChiefService* chief, StopSignal* companion_stop) {
      return RunWorkerRole(context, flags.worker, devices, chief,
                           GrpcParameterClients(context, flags.worker, own_shard), companion_stop);
    });
  }
  return RunChiefRole(context, flags.chief, surroundings, stop);
}

}  // namespace keelson
