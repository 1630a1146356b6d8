// A gRPC server that hides gRPC's builder from the mains.
#ifndef KEELSON_CORE_RPC_SERVER_H_
#define KEELSON_CORE_RPC_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace keelson {

// Serves from construction to Shutdown or destruction. Thread-safe.
class RpcServer {
 public:
  // `listen_address` is "host:port"; port 0 takes a free one. `services` has at least one; they
  // outlive the server. INVALID_ARGUMENT: the address cannot be used (taken, not ours, malformed);
  // the text says why.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& listen_address,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::vector<grpc::Service*>& services);
  ~RpcServer();

  int port() const { return port_; }

  // Lets running calls end, cancels them after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer(std::unique_ptr<grpc::Server> server, int port)
      : server_(std::move(server)), port_(port) {}

  const std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_SERVER_H_
