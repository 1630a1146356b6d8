// A ParameterClient for remote servers that owns its connections.
#ifndef KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/client/sharded_parameter_client.h"
#include "core/rpc/credentials.h"

namespace keelson {

// The kind of socket used for a server on the same host.
enum class LocalRoute {
  kAuto,  // kUnix for a shard of at most kUnixSocketBytes, else kTcp
  kUnix,  // BulkAddress, where the server listens on a unix socket
  kTcp,
};
inline constexpr int64_t kUnixSocketBytes = 128 * 1024;

// `shard_bytes`: of the shard's values in float32.
bool UsesLocalSocket(LocalRoute route, int64_t shard_bytes);

struct BulkConnectionOptions {
  int connections = 1;  // to each server
  LocalRoute local_route = LocalRoute::kAuto;
};

// Connects to `addresses[s]` for shard s and owns the connections. Otherwise as
// ShardedParameterClient::Create.
absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<std::string>& addresses,
    const Credentials& credentials, const Clock* clock, const StopSignal* stop,
    const BulkConnectionOptions& connections = {});

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
