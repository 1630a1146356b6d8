#include "bench/baseline_roles.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/baseline_service.grpc.pb.h"
#include "bench/message_memory.h"
#include "bench/socket.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

constexpr absl::Duration kStubTimeout = absl::Seconds(30);
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

// Server and client of one message size.
class BaselineService final : public v1::BaselineService::Service {
 public:
  explicit BaselineService(MessageMemory memory) : memory_(std::move(memory)) {}

  grpc::Status Empty(grpc::ServerContext*, const v1::EmptyRequest*, v1::EmptyResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext*, const v1::BaselinePushRequest* request,
                    v1::BaselinePushResponse*) override {
    const std::string& payload = request->payload();
    std::memcpy(NextPlace(), payload.data(), std::min(payload.size(), memory_.message_bytes()));
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::BaselinePullRequest*,
                    v1::BaselinePullResponse* response) override {
    response->set_payload(NextPlace(), memory_.message_bytes());
    return grpc::Status::OK;
  }
  grpc::Status PushPull(grpc::ServerContext* context, const v1::BaselinePushRequest* request,
                        v1::BaselinePullResponse* response) override {
    char* const place = NextPlace();
    const std::string& payload = request->payload();
    std::memcpy(place, payload.data(), std::min(payload.size(), memory_.message_bytes()));
    response->set_payload(place, memory_.message_bytes());
    return grpc::Status::OK;
  }

 private:
  char* NextPlace() {
    const MutexLock lock(&mu_);
    return memory_.Next();
  }

  Mutex mu_;
  MessageMemory memory_;
};

class BaselineServer : public PeerRole {
 public:
  static absl::StatusOr<std::unique_ptr<PeerRole>> Start(const json& spec) {
    auto server = std::make_unique<BaselineServer>(MessageMemory(
        spec.at("message_bytes").get<size_t>(), spec.at("memory_bytes").get<size_t>()));
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.RegisterService(&server->service_);
    int port = 0;
    const auto transport = spec.at("transport").get<std::string>();
    if (TransportFromName(transport) != Transport::kTcp) {
      server->address_ = absl::StrCat("unix-abstract:keelson-bench-baseline-", getpid());
      builder.AddListeningPort(server->address_, grpc::InsecureServerCredentials());
    } else {
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    }
    server->server_ = builder.BuildAndStart();
    if (server->server_ == nullptr) return absl::InternalError("the server did not start");
    if (server->address_.empty()) server->address_ = absl::StrCat("127.0.0.1:", port);
    return server;
  }

  explicit BaselineServer(MessageMemory memory) : service_(std::move(memory)) {}
  ~BaselineServer() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  json Ready() const override { return {{"address", address_}}; }

 private:
  BaselineService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Calls of one thread.
class BaselineCaller {
 public:
  BaselineCaller(v1::BaselineService::Stub* stub, const json& spec)
      : stub_(stub),
        memory_(spec.at("message_bytes").get<size_t>(), spec.at("memory_bytes").get<size_t>()) {}

  absl::StatusOr<ClientReport> Run(const std::string& method, const Window& window) {
    Meter meter(window);
    Meter::Operation call;
    do {
      call = {};
      call.started = MonotonicSeconds();
      RETURN_IF_ERROR(FromGrpcStatus(Call(method, &call), "baseline server"));
      call.ended = MonotonicSeconds();
    } while (meter.Count(call));
    return meter.Report();
  }

 private:
  grpc::Status Call(const std::string& method, Meter::Operation* call) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kStubTimeout));
    const auto bytes = static_cast<int64_t>(memory_.message_bytes());
    if (method == "empty") return Empty(&context);
    if (method != "pull") call->pushed_bytes = bytes;
    if (method != "push") call->pulled_bytes = bytes;
    if (method == "push") return Push(&context);
    return method == "pull" ? Pull(&context) : PushPull(&context);
  }

  grpc::Status Empty(grpc::ClientContext* context) {
    v1::EmptyResponse response;
    return stub_->Empty(context, v1::EmptyRequest(), &response);
  }

  grpc::Status Push(grpc::ClientContext* context) {
    v1::BaselinePushRequest request;
    v1::BaselinePushResponse response;
    request.set_payload(memory_.Next(), memory_.message_bytes());
    return stub_->Push(context, request, &response);
  }

  grpc::Status Pull(grpc::ClientContext* context) {
    v1::BaselinePullRequest request;
    v1::BaselinePullResponse response;
    request.set_payload_bytes(static_cast<int64_t>(memory_.message_bytes()));
    return Take(stub_->Pull(context, request, &response), response);
  }

  grpc::Status PushPull(grpc::ClientContext* context) {
    v1::BaselinePushRequest request;
    v1::BaselinePullResponse response;
    request.set_payload(memory_.Next(), memory_.message_bytes());
    return Take(stub_->PushPull(context, request, &response), response);
  }

  grpc::Status Take(const grpc::Status& status, const v1::BaselinePullResponse& response) {
    const std::string& payload = response.payload();
    std::memcpy(memory_.Next(), payload.data(), std::min(payload.size(), memory_.message_bytes()));
    return status;
  }

  v1::BaselineService::Stub* const stub_;
  MessageMemory memory_;
};

class BaselineClient : public PeerRole {
 public:
  static absl::StatusOr<std::unique_ptr<PeerRole>> Connect(const json& spec) {
    auto channel = keelson::CreateChannel(spec.at("address").get<std::string>(),
                                          grpc::InsecureChannelCredentials());
    if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kConnectTimeout))) {
      return absl::UnavailableError("the baseline server does not answer");
    }
    return std::make_unique<BaselineClient>(std::move(channel), spec);
  }

  BaselineClient(std::shared_ptr<grpc::Channel> channel, const json& spec)
      : stub_(v1::BaselineService::NewStub(channel)) {
    const int threads = spec.value("threads", 1);
    for (int i = 0; i < threads; ++i) callers_.emplace_back(stub_.get(), spec);
  }

  absl::StatusOr<json> Do(const json& command) override {
    const auto method = command.at("method").get<std::string>();
    const Window window = WindowOf(command);
    std::vector<absl::StatusOr<ClientReport>> reports(callers_.size(), absl::UnknownError(""));
    std::vector<std::thread> threads;
    for (size_t i = 1; i < callers_.size(); ++i) {
      threads.emplace_back([&, i] { reports[i] = callers_[i].Run(method, window); });
    }
    reports[0] = callers_[0].Run(method, window);
    for (std::thread& thread : threads) thread.join();
    ClientReport total;
    for (const auto& report : reports) {
      RETURN_IF_ERROR(report.status());
      total.Add(*report);
    }
    return ToJson(total);
  }

 private:
  const std::unique_ptr<v1::BaselineService::Stub> stub_;
  std::vector<BaselineCaller> callers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerRole>> MakeBaselineServer(const json& spec) {
  return BaselineServer::Start(spec);
}

absl::StatusOr<std::unique_ptr<PeerRole>> MakeBaselineClient(const json& spec) {
  return BaselineClient::Connect(spec);
}

}  // namespace keelson::bench
