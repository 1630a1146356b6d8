// The control calls of a remote parameter server.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_

#include <memory>
#include <string>

#include "core/client/services/parameter_control.h"
#include "core/rpc/credentials.h"

namespace keelson {

// `peer` is its name in error texts, "ps-1". Deadlines: ChiefHeartbeat, PrepareCut, GetStatus,
// FindChief and Finish 5 s; CommitRound 60 s; those that access files or send a shard, 30 min. Each
// unary call but GetStatus also returns FAILED_PRECONDITION when the server speaks another message
// protocol.
std::unique_ptr<ParameterControl> ConnectParameterControl(const std::string& peer,
                                                          const std::string& address,
                                                          const Credentials& credentials);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_
