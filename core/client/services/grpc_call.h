// What the clients of both services share: how a call begins.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_

#include <grpcpp/client_context.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/rpc/credentials.h"

namespace keelson {

// Gives a call that has not started its deadline and what its caller shows.
inline void Prepare(const Claim& claim, absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  AddClaim(claim, context);
}

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
