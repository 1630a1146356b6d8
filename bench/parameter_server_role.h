// A parameter server as the measured programs have it: the same shell, threads and handler.
#ifndef KEELSON_BENCH_PARAMETER_SERVER_ROLE_H_
#define KEELSON_BENCH_PARAMETER_SERVER_ROLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/peer_role.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/server.h"
#include "ps_server/service/parameter_grpc_service.h"

namespace keelson::bench {

// Serves from Start to destruction.
class ParameterServer {
 public:
  struct Options {
    std::string listen_address;  // "host:port", or gRPC's "unix-abstract:name"
    // "discard", "sum"; others: the real handler, whose optimizer comes with Initialize.
    std::string handler;
    int io_threads = 1;
    // The real handler's; empty: it writes no snapshots.
    std::string model_dir = {};
  };
  // INVALID_ARGUMENT: the address cannot be used.
  static absl::StatusOr<std::unique_ptr<ParameterServer>> Start(const Options& options);

  int port() const { return server_->port(); }

 private:
  // The interfaces of one object.
  struct Handler {
    std::unique_ptr<ParameterControl> control;
    BulkHandler* bulk;
  };

  explicit ParameterServer(const Options& options);
  Handler MakeHandler(const Options& options);

  StopSignal end_;
  const Handler handler_;
  ParameterGrpcService service_;
  std::unique_ptr<RpcServer> server_;
};

// On a free port of the loopback interface, or an abstract unix socket. spec: "transport",
// "handler", "io_threads" and, for snapshots, "model_dir".
absl::StatusOr<std::unique_ptr<PeerRole>> MakeParameterServer(const nlohmann::json& spec);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_PARAMETER_SERVER_ROLE_H_
