// gRPC's health service on its own port, for tasks that serve nothing else.
#ifndef KEELSON_CORE_RPC_HEALTH_ENDPOINT_H_
#define KEELSON_CORE_RPC_HEALTH_ENDPOINT_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace keelson {

class AccessGuard;
class HealthService;
class RpcServer;

// Serves from Start to destruction. Its threads do not block on the sockets, where they would take
// input of the process's other connections; they poll 50 times a second, which delays answers.
class HealthEndpoint {
 public:
  // `listen_address` is "host:port"; port 0 takes a free one. SERVING while `ready` is set, which
  // outlives the endpoint. INVALID_ARGUMENT: the address cannot be used; the text says why.
  static absl::StatusOr<std::unique_ptr<HealthEndpoint>> Start(const std::string& listen_address,
                                                               const std::atomic<bool>* ready);
  ~HealthEndpoint();

  int port() const;

 private:
  HealthEndpoint(std::unique_ptr<AccessGuard> guard, std::unique_ptr<HealthService> service,
                 std::unique_ptr<RpcServer> server);

  const std::unique_ptr<AccessGuard> guard_;
  const std::unique_ptr<HealthService> service_;
  const std::unique_ptr<RpcServer> server_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_HEALTH_ENDPOINT_H_
