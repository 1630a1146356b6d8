// A parameter server behind real gRPC on this machine, for tests.
#ifndef KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_
#define KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/client/services/grpc_parameter_service.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "ps_server/service/parameter_grpc_service.h"

namespace keelson {

// Serves `handler`, which outlives it.
class LoopbackServer {
 public:
  // `threads` threads execute the bulk calls.
  explicit LoopbackServer(ParameterService* handler, int threads = 1) : service_(handler) {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   {service_.RawMethods(), threads});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  std::unique_ptr<ParameterService> Connect() const {
    return ConnectParameterService("ps-0", address(), grpc::InsecureChannelCredentials());
  }
  void Shutdown() { server_->Shutdown(absl::ZeroDuration()); }

 private:
  ParameterGrpcService service_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_
