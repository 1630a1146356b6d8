// A remote chief.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/client/services/chief_service.h"

namespace keelson {

// Deadlines: `timeout`, and `timeout` beyond `max_wait` for the calls that wait. `token` is the
// job's (core/base/auth_token.h), which goes with every call; empty: none.
std::unique_ptr<ChiefService> ConnectChiefService(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const std::string& token = "", absl::Duration timeout = absl::Seconds(5));

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
