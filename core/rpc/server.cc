#include "core/rpc/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_library.h"
#include "core/rpc/local_socket.h"

namespace keelson {
namespace {

// A worker has a few under way on a connection.
constexpr int kMaxCallsPerConnection = 128;

// Calls that wait hold a thread each: work that is asked for, models that are not there yet.
constexpr int kMaxThreads = 4096;

// gRPC only says that it could not bind; binding once more gives the system's reason. Returns
// nothing if that succeeds.
std::optional<std::string> BindFailure(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "not of the form host:port";
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int result = bind(fd, found->ai_addr, found->ai_addrlen);
  std::optional<std::string> reason;
  if (result != 0) reason = strerror(errno);
  close(fd);
  freeaddrinfo(found);
  return reason;
}

// What one peer may take of a server. Messages are not inflated: gRPC compares their size with the
// limit before and again after, and keeps what it took meanwhile.
void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                              1 << GRPC_COMPRESS_NONE);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  // A peer whose node is lost closes no connection.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Clients ping every 10 s (channel.cc), and gRPC itself now and then.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 20);
  grpc::ResourceQuota quota("keelson");
  quota.SetMaxThreads(kMaxThreads);
  builder->SetResourceQuota(quota);
}

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address, ": ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& listen_address, const std::shared_ptr<grpc::ServerCredentials>& credentials,
    const std::vector<grpc::Service*>& services, RawServing raw) {
  KeepGrpcRunning();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen_address, credentials, &port);
  // Two servers must not share a port by accident.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  SetLimits(&builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<RawServer> raw_server;
  const int local_port = raw.methods.empty() ? 0 : LocalSocketPort(listen_address);
  if (local_port > 0) builder.AddListeningPort(LocalSocket(local_port), credentials);
  if (!raw.methods.empty() || raw.pause > absl::ZeroDuration()) {
    raw_server = std::make_unique<RawServer>(std::move(raw.methods), raw.threads, raw.pause,
                                             raw.guard, &builder);
  }
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    const std::optional<std::string> why = BindFailure(listen_address);
    if (!why.has_value() && local_port > 0) return CannotListen(LocalSocket(local_port), "in use");
    return CannotListen(listen_address, why.value_or("the address became free meanwhile"));
  }
  if (raw_server != nullptr) raw_server->Start();
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(raw_server), std::move(server), port));
}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

void RpcServer::Shutdown(absl::Duration grace) {
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  if (raw_ != nullptr) raw_->Shutdown();
  server_->Wait();
}

}  // namespace keelson
