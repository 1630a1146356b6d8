#include "core/rpc/server.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/available_memory.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_library.h"
#include "core/rpc/local_socket.h"

namespace keelson {
namespace {

// A worker has a few under way on a connection.
constexpr int kMaxCallsPerConnection = 128;

// A stream holds a thread, and so does a call until it is answered, but for those of
// waiting_call.h.
constexpr int kMaxThreads = 4096;
constexpr int kMostWaitingThreads = 16;

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
  // Clients ping every 10 s (channel.cc), and gRPC itself now and then.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 20);
  grpc::ResourceQuota quota("keelson");
  quota.SetMaxThreads(kMaxThreads);
  // Its memory stays unbounded: when it is scarce, gRPC ends connections whoever they belong to, so
  // strangers could end those of members. What strangers send is bounded by ConnectionGate, what
  // members send by the receive budget.
  builder->SetResourceQuota(quota);
  // Threads that wait for calls. Each one too many ends, and with few a burst of calls starts, and
  // ends, a thread for each of them.
  builder->SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, kMostWaitingThreads);
}

void SetKeepalive(const Keepalive& keepalive, grpc::ServerBuilder* builder) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive.silence));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive.patience));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address, ": ", why));
}

// Empty: the server has none.
std::string LocalSocketFor(const std::string& listen_address, const RawServing& raw) {
  if (IsLocalSocket(listen_address)) return listen_address;
  const int port = raw.methods.empty() ? 0 : LocalSocketPort(listen_address);
  return port > 0 ? LocalSocket(port) : "";
}

// Likewise.
std::string MemorySocketFor(const std::string& listen_address, const RawServing& raw) {
  const bool none = raw.methods.empty() && raw.through_memory.empty();
  const int port = none ? 0 : LocalSocketPort(listen_address);
  return port > 0 ? MemorySocket(port) : "";
}

// Where nobody is asked who he is, all are treated alike.
ConnectionGate::Limits Undivided(ConnectionGate::Limits limits) {
  limits.unknown = limits.connections;
  limits.hand_over.at_once = limits.connections;
  limits.hand_over.of_address = limits.connections;
  limits.unknown_bytes = std::numeric_limits<int64_t>::max();
  return limits;
}

}  // namespace

size_t ReceiveBudget() {
  constexpr int64_t kMost = 256 << 20;
  return static_cast<size_t>(std::min(kMost, AvailableMemory() / 8));
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& listen_address, const std::shared_ptr<grpc::ServerCredentials>& credentials,
    const std::vector<grpc::Service*>& services, RawServing raw,
    const ConnectionGate::Limits& limits, const Keepalive& keepalive) {
  KeepGrpcRunning();
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  SetKeepalive(keepalive, &builder);
  std::unique_ptr<ConnectionGate> gate;
  if (!IsLocalSocket(listen_address)) {
    absl::StatusOr<std::unique_ptr<ConnectionGate>> opened =
        ConnectionGate::Listen(listen_address, raw.guard == nullptr ? Undivided(limits) : limits);
    if (!opened.ok()) return CannotListen(listen_address, opened.status().message());
    gate = *std::move(opened);
  }
  std::unique_ptr<LocalListener> local;
  if (const std::string name = LocalSocketFor(listen_address, raw); !name.empty()) {
    absl::StatusOr<std::unique_ptr<LocalListener>> opened = LocalListener::Listen(name);
    if (!opened.ok()) return CannotListen(name, opened.status().message());
    local = *std::move(opened);
  }
  std::unique_ptr<MemoryServer> memory;
  if (const std::string name = MemorySocketFor(listen_address, raw); !name.empty()) {
    absl::StatusOr<std::unique_ptr<MemoryServer>> opened = MemoryServer::Listen(name);
    if (!opened.ok()) return CannotListen(name, opened.status().message());
    memory = *std::move(opened);
  }
  Acceptor acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  for (grpc::Service* service : services) builder.RegisterService(service);
  const AccessGuard* const guard = raw.guard;
  MemoryMethods methods = {raw.methods, std::move(raw.through_memory)};
  raw.receive_budget_bytes = std::min(raw.receive_budget_bytes, ReceiveBudget());
  std::unique_ptr<RawServer> raw_server;
  if (!raw.methods.empty() || raw.pause > absl::ZeroDuration()) {
    raw_server = std::make_unique<RawServer>(std::move(raw), &builder);
  }
  auto poller = raw_server == nullptr ? std::make_unique<EventPoller>(&builder) : nullptr;
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return CannotListen(listen_address, "gRPC does not start");
  return std::unique_ptr<RpcServer>(new RpcServer(
      guard, std::move(gate), std::move(local), std::move(memory), std::move(acceptor),
      std::move(methods), std::move(raw_server), std::move(poller), std::move(server)));
}

RpcServer::RpcServer(const AccessGuard* guard, std::unique_ptr<ConnectionGate> gate,
                     std::unique_ptr<LocalListener> local, std::unique_ptr<MemoryServer> memory,
                     Acceptor acceptor, MemoryMethods methods, std::unique_ptr<RawServer> raw,
                     std::unique_ptr<EventPoller> poller, std::unique_ptr<grpc::Server> server)
    : guard_(guard),
      gate_(std::move(gate)),
      local_(std::move(local)),
      memory_(std::move(memory)),
      acceptor_(std::move(acceptor)),
      raw_(std::move(raw)),
      poller_(std::move(poller)),
      server_(std::move(server)) {
  if (raw_ != nullptr) raw_->Start();
  if (poller_ != nullptr) poller_->Start();
  const auto hand_over = [this](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor_->HandleNewConnection(&connection);
  };
  if (local_ != nullptr) local_->Start(hand_over);
  if (memory_ != nullptr) memory_->Start(std::move(methods), guard_);
  if (gate_ == nullptr) return;
  if (guard_ != nullptr) guard_->ReportTo(gate_.get());
  gate_->Start(hand_over);
}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

void RpcServer::Shutdown(absl::Duration grace) {
  if (gate_ != nullptr) gate_->Stop();
  if (local_ != nullptr) local_->Stop();
  if (memory_ != nullptr) memory_->Stop();
  if (raw_ != nullptr) raw_->BeginShutdown();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  if (raw_ != nullptr) raw_->Shutdown();
  if (poller_ != nullptr) poller_->Shutdown();
  server_->Wait();
  if (gate_ != nullptr && guard_ != nullptr) guard_->ReportNoMoreTo(gate_.get());
}

}  // namespace keelson
