// A remote chief.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/client/services/chief_service.h"

namespace keelson {

// The deadline of a call is `timeout`, and `timeout` beyond `max_wait` for calls that wait. Each
// call carries `token`, the job's (core/base/auth_token.h); empty: none.
std::unique_ptr<ChiefService> ConnectChiefService(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const std::string& token = "", absl::Duration timeout = absl::Seconds(5));

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_CHIEF_SERVICE_H_
