// What the clients of both services share: deadlines, and the names of raw calls.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_

#include <grpcpp/client_context.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

inline std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

// The full name of a bulk call: "/keelson.v1.ParameterService/Push".
inline std::string BulkMethodPath(BulkMethod method) {
  return absl::StrCat("/keelson.v1.ParameterService/", BulkMethodName(method));
}

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CALL_H_
