// The control calls of a remote parameter server.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/credentials.h"

namespace keelson {

// Deadlines of the calls by which the chief notices that a server is frozen. Where a replica can
// take its place they are short; without one there is nothing to be done but to wait.
struct ControlDeadlines {
  absl::Duration heartbeat = absl::Seconds(5);
  absl::Duration commit = absl::Seconds(60);
};

// `peer` is its name in error texts, "ps-1". Deadlines: ChiefHeartbeat, GetStatus and CommitRound
// as given, ReplicateRound as CommitRound, at most 10 s; PrepareCut, FindChief and Finish 5 s;
// those that access files or send a shard, 30 min. Each unary call but GetStatus also returns
// FAILED_PRECONDITION when the server speaks another message protocol.
std::unique_ptr<ParameterControl> ConnectParameterControl(const std::string& peer,
                                                          const std::string& address,
                                                          const Credentials& credentials,
                                                          const ControlDeadlines& deadlines = {});

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_CONTROL_H_
