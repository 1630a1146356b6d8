// What the clients of both services share: how a call begins, and the names of raw calls.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_

#include <grpcpp/client_context.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/rpc/credentials.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// Gives a call that has not started its deadline and what its caller shows.
inline void Prepare(const Claim& claim, absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  AddClaim(claim, context);
}

// The full name of a bulk call: "/keelson.v1.ParameterService/Push".
inline std::string BulkMethodPath(BulkMethod method) {
  return absl::StrCat("/keelson.v1.ParameterService/", BulkMethodName(method));
}

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
