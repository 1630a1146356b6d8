#include "core/client/transport/grpc_bulk_transport.h"

#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/client/exchange/fake_shard_testing.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/services/grpc_call.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

ByteRope RopeOf(const std::string& bytes) {
  ByteRope rope;
  rope.AppendCopy(bytes);
  return rope;
}

// Serves a ParameterControl's bulk calls, from `threads` threads.
class Server
    : public v1::ParameterService::WithGenericMethod_Pull<
          v1::ParameterService::WithGenericMethod_Push<
              v1::ParameterService::WithGenericMethod_PushPull<v1::ParameterService::Service>>> {
 public:
  explicit Server(std::function<absl::StatusOr<ByteRope>(BulkMethod, ByteRope)> handle,
                  const std::string& address = "127.0.0.1:0") {
    RawServing raw;
    for (const BulkMethod method : {BulkMethod::kPull, BulkMethod::kPush, BulkMethod::kPushPull}) {
      raw.methods.push_back({BulkMethodPath(method), [handle, method](ByteRope bytes) {
                               return handle(method, std::move(bytes));
                             }});
    }
    auto server =
        RpcServer::Start(address, grpc::InsecureServerCredentials(), {this}, std::move(raw));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Server() override { server_.reset(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  void Shutdown() { server_->Shutdown(absl::ZeroDuration()); }

 private:
  std::unique_ptr<RpcServer> server_;
};

absl::StatusOr<ByteRope> Echo(BulkMethod method, ByteRope bytes) {
  return RopeOf(absl::StrCat(BulkMethodName(method), " ", bytes.ToString()));
}

std::unique_ptr<GrpcBulkTransport> Connect(std::vector<std::string> addresses,
                                           int connections = 1) {
  std::vector<BulkServer> servers;
  for (std::string& address : addresses) servers.push_back({std::move(address)});
  return std::make_unique<GrpcBulkTransport>(std::move(servers), Credentials(), connections);
}

BulkCompletion Await(BulkTransport* transport) {
  while (true) {
    std::optional<BulkCompletion> completion = transport->Next(kLong);
    if (completion.has_value()) return *std::move(completion);
  }
}

TEST(GrpcBulkTransportTest, CallsReachTheirServersAndMethods) {
  for (const int connections : {1, 3}) {
    Server first(Echo);
    Server second([](BulkMethod method, ByteRope) {
      return absl::InvalidArgumentError(absl::StrCat("no ", BulkMethodName(method)));
    });
    const auto transport = Connect({first.address(), second.address()}, connections);
    EXPECT_EQ(transport->num_shards(), 2);
    transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 1);
    transport->Start(0, BulkMethod::kPush, RopeOf("b"), kLong, 2);
    transport->Start(0, BulkMethod::kPushPull, RopeOf("c"), kLong, 3);
    transport->Start(1, BulkMethod::kPull, RopeOf("d"), kLong, 4);
    std::set<std::string> answers;
    for (int i = 0; i < 4; ++i) {
      const BulkCompletion completion = Await(transport.get());
      answers.insert(absl::StrCat(completion.tag, " ", completion.status.message(),
                                  completion.response.ToString()));
    }
    EXPECT_EQ(answers,
              (std::set<std::string>{"1 Pull a", "2 Push b", "3 PushPull c", "4 no Pull"}));
  }
}

TEST(GrpcBulkTransportTest, NextReturnsAtOnceWithoutWorkAndWhenWoken) {
  const auto transport = Connect({"127.0.0.1:1"});
  EXPECT_FALSE(transport->Next(absl::ZeroDuration()).has_value());
  transport->Wake();
  EXPECT_FALSE(transport->Next(kLong).has_value());
  std::thread waker([&] { transport->Wake(); });
  EXPECT_FALSE(transport->Next(kLong).has_value());
  waker.join();
}

TEST(GrpcBulkTransportTest, ServerThatIsAwayIsUnavailableByNameAndFoundWhenItComes) {
  auto server = std::make_unique<Server>(Echo);
  const std::string address = server->address();
  server.reset();
  const auto transport = Connect({address});
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 1);
  const BulkCompletion failed = Await(transport.get());
  EXPECT_TRUE(absl::IsUnavailable(failed.status)) << failed.status;
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("ps-0 at " + address));
  server = std::make_unique<Server>(Echo, address);
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 2);
  const BulkCompletion answered = Await(transport.get());
  EXPECT_TRUE(answered.status.ok()) << answered.status;
}

// Holds back every call until it is opened.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Enter() {
    MutexLock lock(&mu_);
    entered_ = true;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(&mu_);
  }
  void AwaitEntered() {
    MutexLock lock(&mu_);
    while (!entered_) changed_.Wait(&mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool entered_ ABSL_GUARDED_BY(mu_) = false;
};

// A rope of `size` bytes of `memory` that counts its holders.
ByteRope Counted(const std::string& memory, std::atomic<int>* held) {
  ByteRope rope;
  ++*held;
  rope.Append({reinterpret_cast<const uint8_t*>(memory.data()), memory.size(),
               Pin([](void* user) { --*static_cast<std::atomic<int>*>(user); }, held)});
  return rope;
}

TEST(GrpcBulkTransportTest, RequestsAreReleasedBeforeTheirAnswersAreReturned) {
  Server server([](BulkMethod, ByteRope) -> absl::StatusOr<ByteRope> { return ByteRope(); });
  const std::string memory(4 << 20, 'x');
  const auto transport = Connect({server.address()});
  for (uint64_t tag = 0; tag < 20; ++tag) {
    std::atomic<int> held{0};
    transport->Start(0, BulkMethod::kPush, Counted(memory, &held), kLong, tag);
    EXPECT_TRUE(Await(transport.get()).status.ok());
    EXPECT_EQ(held, 0) << tag;
  }
}

TEST(GrpcBulkTransportTest, ResetEndsCallsAndReleasesTheirRequests) {
  Gate gate;
  Server server([&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  });
  const std::string memory(8 << 20, 'x');
  std::atomic<int> held{0};
  const auto transport = Connect({server.address()});
  for (uint64_t tag = 1; tag <= 3; ++tag) {
    transport->Start(0, BulkMethod::kPush, Counted(memory, &held), kLong, tag);
  }
  transport->Reset(0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsUnavailable(Await(transport.get()).status));
  while (held > 0) transport->Next(absl::Milliseconds(1));
  gate.Open();
  transport->Start(0, BulkMethod::kPush, RopeOf("again"), kLong, 9);
  EXPECT_EQ(Await(transport.get()).response.ToString(), "again");
}

TEST(GrpcBulkTransportTest, EndsWithCallsUnderWay) {
  Gate gate;
  Server server([&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  });
  auto transport = Connect({server.address()});
  transport->Start(0, BulkMethod::kPush, RopeOf("x"), kLong, 1);
  while (transport->Next(absl::Milliseconds(1)).has_value()) {
  }
  transport.reset();
  gate.Open();
}

TEST(GrpcBulkTransportTest, DeadlinesAreTransient) {
  Gate gate;
  Server server([&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  });
  const auto transport = Connect({server.address()});
  transport->Start(0, BulkMethod::kPush, RopeOf("x"), absl::Milliseconds(1), 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Await(transport.get()).status));
  gate.Open();
}

// ---- The whole client.

class ConnectParameterClientTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Depths, ConnectParameterClientTest, testing::Values(1, 2));

TEST_P(ConnectParameterClientTest, TrainsOverConnections) {
  const std::vector<VariableSpec> variables = {{"a", Shape({900, 1000}), {}},
                                               {"b", Shape({2000, 1000}), {}}};
  const Placement placement = Placement::Compute(variables, 2);
  FakeShard first(&placement), second(&placement);
  Server server_a([&](BulkMethod m, ByteRope r) { return first.Bulk(m, std::move(r)); });
  Server server_b([&](BulkMethod m, ByteRope r) { return second.Bulk(m, std::move(r)); });
  StopSignal stop;
  ShardedParameterClient::Options options;
  options.depth = GetParam();
  options.background = options.depth == 2;
  auto client = ConnectParameterClient(
      options, variables, placement, {server_a.address(), server_b.address()}, Credentials(),
      Clock::Real(), &stop, BulkConnectionOptions{/*connections=*/2});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Pull().ok());
  for (int step = 0; step < 3; ++step) {
    (*client)->Begin(step);
    for (const size_t v : {1, 0}) {
      const absl::Span<float> gradient = (*client)->gradients()[v];
      std::fill(gradient.begin(), gradient.end(), static_cast<float>(v + 1));
      (*client)->Offer(v);
    }
    const auto result = (*client)->End();
    ASSERT_TRUE(result.ok()) << result.status();
  }
  ASSERT_TRUE((*client)->Drain().ok());
  for (size_t v = 0; v < 2; ++v) {
    const absl::Span<float> values = (*client)->values()[v];
    EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f - 3.0f * static_cast<float>(v + 1)),
              static_cast<int64_t>(values.size()));
  }
}

TEST(UsesLocalSocketTest, AutoTakesItForSmallShards) {
  EXPECT_TRUE(UsesLocalSocket(LocalRoute::kAuto, kUnixSocketBytes));
  EXPECT_FALSE(UsesLocalSocket(LocalRoute::kAuto, kUnixSocketBytes + 1));
  EXPECT_TRUE(UsesLocalSocket(LocalRoute::kUnix, int64_t{1} << 30));
  EXPECT_FALSE(UsesLocalSocket(LocalRoute::kTcp, 1));
}

}  // namespace
}  // namespace keelson
