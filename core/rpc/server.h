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
#include "core/rpc/access.h"
#include "core/rpc/raw_server.h"

namespace keelson {

// Methods that are served as bytes, beside the ordinary ones, and the threads that do the input and
// output.
struct RawServing {
  std::vector<RawMethod> methods;
  // The number of threads that receive, handle and answer; each has its own connections.
  int threads = 1;
  // Zero: the threads block on the sockets. Otherwise they poll at this interval: a thread that
  // blocks also takes input of the process's other connections, and has to pass it to their
  // threads.
  absl::Duration pause = absl::ZeroDuration();
  // Checks the callers of the methods, and outlives the server; null: everyone may call.
  const AccessGuard* guard = nullptr;
};

// Serves from construction to Shutdown or destruction. Thread-safe.
class RpcServer {
 public:
  // `listen_address` is "host:port"; port 0 takes a free one. `services` has at least one; they
  // outlive the server and contain the raw methods. With raw methods or a pause all input and
  // output is done by RawServing's threads. With raw methods the server also listens on the
  // LocalSocket of its port (core/rpc/local_socket.h) where it has one. INVALID_ARGUMENT: the
  // address cannot be used (taken, not this host's, malformed); the text says why.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& listen_address,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::vector<grpc::Service*>& services, RawServing raw = {});
  ~RpcServer();

  int port() const { return port_; }

  // Lets running calls end, cancels them after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer(std::unique_ptr<RawServer> raw, std::unique_ptr<grpc::Server> server, int port)
      : raw_(std::move(raw)), server_(std::move(server)), port_(port) {}

  // Null without raw methods and pause. Its queues are there until the server is gone.
  const std::unique_ptr<RawServer> raw_;
  const std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_SERVER_H_
