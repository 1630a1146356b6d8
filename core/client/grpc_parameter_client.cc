#include "core/client/grpc_parameter_client.h"

#include <utility>

#include "core/client/transport/grpc_bulk_transport.h"

namespace keelson {

bool UsesLocalSocket(LocalRoute route, int64_t shard_bytes) {
  return route == LocalRoute::kAuto ? shard_bytes <= kUnixSocketBytes : route == LocalRoute::kUnix;
}

absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<std::string>& addresses,
    const Credentials& credentials, const Clock* clock, const StopSignal* stop,
    const BulkConnectionOptions& connections) {
  std::vector<BulkServer> servers;
  for (size_t s = 0; s < addresses.size(); ++s) {
    const int64_t bytes = s < placement.num_shards() ? placement.ShardBytes(s) : 0;
    servers.push_back({addresses[s], UsesLocalSocket(connections.local_route, bytes)});
  }
  return ShardedParameterClient::Create(
      std::move(options), variables, placement,
      std::make_unique<GrpcBulkTransport>(std::move(servers), credentials, connections.connections),
      clock, stop);
}

}  // namespace keelson
