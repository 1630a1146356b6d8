#include "core/rpc/health_endpoint.h"

#include <utility>

#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/rpc/access.h"
#include "core/rpc/health_service.h"
#include "core/rpc/server.h"

namespace keelson {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<HealthEndpoint>> HealthEndpoint::Start(
    const std::string& listen_address, const std::atomic<bool>* ready) {
  auto service = std::make_unique<HealthService>(ready);
  // Nobody belongs to this process: all connections are bounded as unknown ones.
  auto guard = std::make_unique<AccessGuard>();
  RawServing serving;
  serving.pause = kPause;
  serving.guard = guard.get();
  ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> server,
                   RpcServer::Start(listen_address, grpc::InsecureServerCredentials(),
                                    {service.get()}, std::move(serving)));
  return std::unique_ptr<HealthEndpoint>(
      new HealthEndpoint(std::move(guard), std::move(service), std::move(server)));
}

HealthEndpoint::HealthEndpoint(std::unique_ptr<AccessGuard> guard,
                               std::unique_ptr<HealthService> service,
                               std::unique_ptr<RpcServer> server)
    : guard_(std::move(guard)), service_(std::move(service)), server_(std::move(server)) {}

HealthEndpoint::~HealthEndpoint() {
  service_->Stop();
  server_->Shutdown(kShutdownGrace);
}

int HealthEndpoint::port() const { return server_->port(); }

}  // namespace keelson
