#include "ps_server/service/loopback_testing.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/transport/grpc_bulk_transport.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class RemoteBulkHandler : public BulkHandler {
 public:
  explicit RemoteBulkHandler(const std::string& address)
      : transport_({BulkServer{"ps-0", address}}, Credentials(), /*connections=*/1) {}

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    transport_.Start(/*shard=*/0, method, std::move(request), absl::Seconds(60), /*tag=*/0);
    std::optional<BulkCompletion> ended;
    while (!ended.has_value()) ended = transport_.Next(absl::Seconds(60));
    RETURN_IF_ERROR(ended->status);
    return std::move(ended->response);
  }

 private:
  GrpcBulkTransport transport_;
};

}  // namespace

LoopbackServer::LoopbackServer(ParameterHandler* handler, int threads, const Clock* clock)
    : service_(handler, handler, clock) {
  auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                 {service_.RawMethods(), threads});
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

std::string LoopbackServer::address() const { return absl::StrCat("127.0.0.1:", server_->port()); }

std::unique_ptr<ParameterControl> LoopbackServer::Connect() const {
  return ConnectParameterControl("ps-0", address(), Credentials());
}

std::unique_ptr<BulkHandler> LoopbackServer::ConnectBulk() const {
  return std::make_unique<RemoteBulkHandler>(address());
}

}  // namespace keelson
