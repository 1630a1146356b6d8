// A remote parameter server.
#ifndef KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_SERVICE_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "core/client/services/parameter_service.h"

namespace keelson {

// `peer` is its name in error texts, "ps-1". Bulk calls use one connection, one at a time per
// calling thread; the others use a second one. Deadlines: Bulk 60 s; GetStatus, FindChief and
// Finish 5 s; Initialize and WriteSnapshot, which access files, 30 min.
std::unique_ptr<ParameterService> ConnectParameterService(
    const std::string& peer, const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_GRPC_PARAMETER_SERVICE_H_
