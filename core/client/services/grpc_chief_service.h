// A remote chief.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/client/services/chief_service.h"
#include "core/rpc/credentials.h"

namespace keelson {

// The deadline of a call is `timeout`, and `timeout` beyond `max_wait` for calls that wait. Each
// call carries the claim of `credentials`. Each but GetJobStatus also returns FAILED_PRECONDITION
// when the chief speaks another message protocol.
std::unique_ptr<ChiefService> ConnectChiefService(const std::string& address,
                                                  const Credentials& credentials,
                                                  absl::Duration timeout = absl::Seconds(5));

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
