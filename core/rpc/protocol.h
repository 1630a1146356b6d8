// The version of the message protocol, which callers and servers show each other.
#ifndef KEELSON_CORE_RPC_PROTOCOL_H_
#define KEELSON_CORE_RPC_PROTOCOL_H_

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace keelson {

// Rises when a message or the meaning of a call changes so that builds before and after it cannot
// train one job together. Builds before number 1 show none.
inline constexpr char kProtocol[] = "9";
// In the metadata of each call and of the answers that CheckAnswer sees.
inline constexpr char kProtocolKey[] = "keelson-protocol";

// FAILED_PRECONDITION: "`who` is of another build: expected message protocol 9, found none".
absl::Status CheckProtocol(absl::string_view shown, absl::string_view who);

// A server shows its protocol with the answer to a call that has not been answered.
void ShowProtocol(grpc::ServerContextBase* context);

// A client checks that the server that answered its call with OK speaks this protocol; see
// CheckProtocol.
absl::Status CheckAnswer(const grpc::ClientContext& context, absl::string_view who);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_PROTOCOL_H_
