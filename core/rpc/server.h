// A gRPC server that hides gRPC's builder from the mains.
#ifndef KEELSON_CORE_RPC_SERVER_H_
#define KEELSON_CORE_RPC_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/rpc/access.h"
#include "core/rpc/connection_gate.h"
#include "core/rpc/event_poller.h"
#include "core/rpc/local_listener.h"
#include "core/rpc/memory_server.h"
#include "core/rpc/raw_server.h"

namespace keelson {

// The bytes of requests that a server receives at a time: 256 MiB, or an eighth of the memory that
// the process may use.
size_t ReceiveBudget();

// A service, and its methods that are served as bytes.
struct ServiceShell {
  std::unique_ptr<grpc::Service> service;
  RawServing serving;
};

// When the server gives up a peer that says nothing: a peer whose node is lost closes no
// connection.
struct Keepalive {
  // A connection, with calls or without, is pinged when it has been silent for this long, at most
  // as often.
  absl::Duration silence = absl::Seconds(30);
  // It is closed, and its calls are cancelled, when its peer says nothing for so long after a ping.
  absl::Duration patience = absl::Seconds(20);
};

// Serves from construction to Shutdown or destruction. Thread-safe.
class RpcServer {
 public:
  // `listen_address` is "host:port", or that of a local socket; port 0 takes a free one. `services`
  // has at least one; they outlive the server and contain the raw methods. With raw methods or a
  // pause all input and output is done by RawServing's threads. With raw methods the server also
  // listens on the LocalSocket of its port (core/rpc/local_socket.h) where it has one, and serves
  // these methods through memory on the MemorySocket, as it serves those of `through_memory`.
  // INVALID_ARGUMENT: the address cannot be used (taken, not this host's, malformed); the text says
  // why. `raw.guard`, also without methods, tells which connections are known (ConnectionGate).
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& listen_address,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::vector<grpc::Service*>& services, RawServing raw = {},
      const ConnectionGate::Limits& limits = ConnectionGate::Limits::OfProcess(),
      const Keepalive& keepalive = {});
  ~RpcServer();

  // 0 for a local socket alone.
  int port() const { return gate_ == nullptr ? 0 : gate_->port(); }

  // Lets running calls end, cancels them after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  using Acceptor = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

  RpcServer(const AccessGuard* guard, std::unique_ptr<ConnectionGate> gate,
            std::unique_ptr<LocalListener> local, std::unique_ptr<MemoryServer> memory,
            Acceptor acceptor, MemoryMethods methods, std::unique_ptr<RawServer> raw,
            std::unique_ptr<EventPoller> poller, std::unique_ptr<grpc::Server> server);

  const AccessGuard* const guard_;
  const std::unique_ptr<ConnectionGate> gate_;  // null for a local socket alone
  const std::unique_ptr<LocalListener> local_;  // null where there is none
  const std::unique_ptr<MemoryServer> memory_;  // likewise
  const Acceptor acceptor_;
  // Null without raw methods and pause. Its queues are there until the server is gone.
  const std::unique_ptr<RawServer> raw_;
  // Null where raw_ has threads that wait for events.
  const std::unique_ptr<EventPoller> poller_;
  const std::unique_ptr<grpc::Server> server_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_SERVER_H_
