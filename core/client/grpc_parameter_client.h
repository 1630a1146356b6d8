// A ParameterClient over remote servers, with its connections.
#ifndef KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "core/client/grpc_bulk_transport.h"
#include "core/client/sharded_parameter_client.h"

namespace keelson {

struct BulkConnectionOptions {
  int connections = 1;  // to each server
  LocalRoute local_route = LocalRoute::kAuto;
};

// Connects to `addresses[s]` for shard s and owns the connections. Otherwise as
// ShardedParameterClient::Create.
absl::StatusOr<std::unique_ptr<ParameterClient>> ConnectParameterClient(
    ShardedParameterClient::Options options, absl::Span<const VariableSpec> variables,
    const Placement& placement, const std::vector<std::string>& addresses,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials, const Clock* clock,
    const StopSignal* stop, const BulkConnectionOptions& connections = {});

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_GRPC_PARAMETER_CLIENT_H_
