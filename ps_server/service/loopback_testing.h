// A parameter server behind real gRPC on this machine, for tests.
#ifndef KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_
#define KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_

#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/server.h"
#include "ps_server/service/parameter_grpc_service.h"
#include "ps_server/service/parameter_handler.h"

namespace keelson {

// Serves `handler`, which outlives it.
class LoopbackServer {
 public:
  // `threads` threads execute the bulk calls. `clock` outlives this.
  explicit LoopbackServer(ParameterHandler* handler, int threads = 1,
                          const Clock* clock = Clock::Real());

  std::string address() const;
  std::unique_ptr<ParameterControl> Connect() const;
  // A way to the bulk calls for one thread, which has one call under way at a time.
  std::unique_ptr<BulkHandler> ConnectBulk() const;
  void Shutdown() { server_->Shutdown(absl::ZeroDuration()); }

 private:
  ParameterGrpcService service_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_LOOPBACK_TESTING_H_
