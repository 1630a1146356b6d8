// Transports to remote servers, and a ParameterClient that owns its connections.
#ifndef KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/client/services/bulk_server.h"
#include "core/client/sharded_parameter_client.h"
#include "core/client/transport/bulk_transport.h"
#include "core/client/transport/own_shard_transport.h"
#include "core/rpc/credentials.h"

namespace keelson {

// How bulk messages reach servers on the same host.
// Where it does not lead to all servers, the next one is taken; also when shards move.
enum class LocalRoute {
  kMemory,  // memory that both processes map (core/rpc/memory_call.h)
  kUnix,    // BulkAddress, where the server listens on a unix socket
  kTcp,
};

struct BulkConnectionOptions {
  int connections = 1;  // to each server; through memory it is one
  LocalRoute local_route = LocalRoute::kMemory;
};

// Parameter servers at these addresses: "ps-0", "ps-1" and so on.
std::vector<BulkServer> ServersAt(const std::vector<std::string>& addresses);

// Connects to `servers[s]` for shard s. `calls` at a time are under way at each. The shards that
// are `uncalled` are not called before they are redirected.
std::unique_ptr<BulkTransport> ConnectBulkTransport(const std::vector<BulkServer>& servers,
                                                    const Credentials& credentials, int calls,
                                                    const BulkConnectionOptions& connections = {},
                                                    const std::set<size_t>& uncalled = {});

// Connects to `servers[s]` for shard s, but for those that are this process's own, and owns the
// connections. Otherwise as ShardedParameterClient::Create.
absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<BulkServer>& servers,
    const Credentials& credentials, const Clock* clock, const StopSignal* stop,
    const BulkConnectionOptions& connections = {},
    const std::optional<OwnShards>& own = std::nullopt);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
