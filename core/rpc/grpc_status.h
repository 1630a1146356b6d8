// Converts statuses between abseil and gRPC.
#ifndef KEELSON_CORE_RPC_GRPC_STATUS_H_
#define KEELSON_CORE_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// Codes are numerically the same on both sides.
grpc::Status ToGrpcStatus(const absl::Status& status);

// A call that the other side cancelled, as a server does that shuts down, is UNAVAILABLE.
// `peer` ("ps-1 at host:2222") is put before the text of transport errors (UNAVAILABLE,
// DEADLINE_EXCEEDED), which do not name the peer.
absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view peer);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_GRPC_STATUS_H_
