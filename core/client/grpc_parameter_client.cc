#include "core/client/grpc_parameter_client.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/client/transport/grpc_bulk_transport.h"
#include "core/client/transport/memory_bulk_transport.h"
#include "core/client/transport/nearest_bulk_transport.h"

namespace keelson {

namespace {

// The shards that the process hosts at first.
std::set<size_t> HostedBy(const OwnShards& own, const std::vector<BulkServer>& servers) {
  std::set<size_t> hosted;
  for (size_t s = 0; s < servers.size(); ++s) {
    if (servers[s].address == own.address && own.handlers.contains(s)) hosted.insert(s);
  }
  return hosted;
}

}  // namespace

std::vector<BulkServer> ServersAt(const std::vector<std::string>& addresses) {
  std::vector<BulkServer> servers;
  for (size_t s = 0; s < addresses.size(); ++s) {
    servers.push_back({absl::StrCat("ps-", s), addresses[s]});
  }
  return servers;
}

std::unique_ptr<BulkTransport> ConnectBulkTransport(const std::vector<BulkServer>& servers,
                                                    const Credentials& credentials, int calls,
                                                    const BulkConnectionOptions& connections,
                                                    const std::set<size_t>& uncalled) {
  const auto connect = [credentials, connections](const std::vector<BulkServer>& to) {
    return std::make_unique<GrpcBulkTransport>(to, credentials, connections.connections,
                                               connections.local_route != LocalRoute::kTcp);
  };
  if (connections.local_route == LocalRoute::kMemory) {
    auto memory = MemoryBulkTransport::Connect(servers, credentials.claim,
                                               static_cast<size_t>(std::max(1, calls)), uncalled);
    if (memory.ok()) {
      return std::make_unique<NearestBulkTransport>(servers, *std::move(memory), connect);
    }
  }
  return connect(servers);
}

absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<BulkServer>& servers,
    const Credentials& credentials, const Clock* clock, const StopSignal* stop,
    const BulkConnectionOptions& connections, const std::optional<OwnShards>& own) {
  const int calls = std::max(1, options.max_in_flight) * static_cast<int>(options.depth);
  const std::set<size_t> hosted = own.has_value() ? HostedBy(*own, servers) : std::set<size_t>();
  // The own shard's calls are made last, since nothing travels while they run.
  if (!hosted.empty()) options.first_shard = (*hosted.begin() + 1) % servers.size();
  options.servers = servers;
  std::unique_ptr<BulkTransport> transport =
      ConnectBulkTransport(servers, credentials, calls, connections, hosted);
  if (own.has_value()) {
    transport = std::make_unique<OwnShardTransport>(*own, servers, std::move(transport));
  }
  return ShardedParameterClient::Create(std::move(options), variables, placement,
                                        std::move(transport), clock, stop);
}

}  // namespace keelson
