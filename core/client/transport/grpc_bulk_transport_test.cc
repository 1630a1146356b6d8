#include "core/client/transport/grpc_bulk_transport.h"

#include <arpa/inet.h>
#include <grpcpp/security/server_credentials.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/exchange/fake_shard_testing.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/sharded_parameter_client.h"
#include "core/client/transport/bulk_transport.h"
#include "core/client/transport/memory_bulk_transport.h"
#include "core/client/transport/own_shard_transport.h"
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

// An address on which nobody listens. A server of port 0 would have no local sockets.
std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

// Serves a ParameterControl's bulk calls, from `threads` threads.
class Server
    : public v1::ParameterService::WithGenericMethod_Pull<
          v1::ParameterService::WithGenericMethod_Push<
              v1::ParameterService::WithGenericMethod_PushPull<v1::ParameterService::Service>>> {
 public:
  explicit Server(std::function<absl::StatusOr<ByteRope>(BulkMethod, ByteRope)> handle,
                  const std::string& address = FreeAddress()) {
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

std::unique_ptr<BulkTransport> ConnectGrpc(const std::vector<std::string>& addresses,
                                           int connections = 1) {
  return std::make_unique<GrpcBulkTransport>(ServersAt(addresses), Credentials(), connections);
}

std::unique_ptr<BulkTransport> ConnectMemory(const std::vector<std::string>& addresses) {
  auto transport = MemoryBulkTransport::Connect(ServersAt(addresses), Claim(), /*calls=*/4);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return transport.ok() ? *std::move(transport) : nullptr;
}

// What every transport to another process does.
class BulkTransportTest : public testing::TestWithParam<const char*> {
 protected:
  // Its servers are there.
  static std::unique_ptr<BulkTransport> Connect(const std::vector<std::string>& addresses) {
    const std::string name = GetParam();
    if (name == "Memory") return ConnectMemory(addresses);
    if (name == "Nearest") return ConnectBulkTransport(ServersAt(addresses), Credentials(), 4);
    return ConnectGrpc(addresses, name == "Grpc" ? 1 : 3);
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, BulkTransportTest,
                         testing::Values("Grpc", "GrpcOfThreeConnections", "Memory", "Nearest"),
                         [](const auto& info) { return std::string(info.param); });

BulkCompletion Await(BulkTransport* transport) {
  while (true) {
    std::optional<BulkCompletion> completion = transport->Next(kLong);
    if (completion.has_value()) return *std::move(completion);
  }
}

TEST_P(BulkTransportTest, CallsReachTheirServersAndMethods) {
  Server first(Echo);
  Server second([](BulkMethod method, ByteRope) {
    return absl::InvalidArgumentError(absl::StrCat("no ", BulkMethodName(method)));
  });
  const auto transport = Connect({first.address(), second.address()});
  EXPECT_EQ(transport->num_shards(), 2);
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 0);
  transport->Start(0, BulkMethod::kPush, RopeOf("b"), kLong, 2);
  transport->Start(0, BulkMethod::kPushPull, RopeOf("c"), kLong, 3);
  transport->Start(1, BulkMethod::kPull, RopeOf("d"), kLong, 4);
  std::set<std::string> answers;
  for (int i = 0; i < 4; ++i) {
    const BulkCompletion completion = Await(transport.get());
    answers.insert(absl::StrCat(completion.tag, " ", completion.status.message(),
                                completion.response.ToString()));
  }
  EXPECT_EQ(answers, (std::set<std::string>{"0 Pull a", "2 Push b", "3 PushPull c", "4 no Pull"}));
}

TEST_P(BulkTransportTest, NextReturnsAtOnceWithoutWorkAndWhenWoken) {
  Server server(Echo);
  const auto transport = Connect({server.address()});
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
  const auto transport = ConnectGrpc({address});
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 1);
  const BulkCompletion failed = Await(transport.get());
  EXPECT_TRUE(absl::IsUnavailable(failed.status)) << failed.status;
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("ps-0 at " + address));
  server = std::make_unique<Server>(Echo, address);
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 2);
  const BulkCompletion answered = Await(transport.get());
  EXPECT_TRUE(answered.status.ok()) << answered.status;
  // Now the connection is one of its local socket.
  server.reset();
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 3);
  EXPECT_TRUE(absl::IsUnavailable(Await(transport.get()).status));
  server = std::make_unique<Server>(Echo, address);
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 4);
  const BulkCompletion again = Await(transport.get());
  EXPECT_TRUE(again.status.ok()) << again.status;
}

TEST_P(BulkTransportTest, AServerThatHasGoneIsFoundWhenItIsBack) {
  auto server = std::make_unique<Server>(Echo);
  const std::string address = server->address();
  const auto transport = Connect({address});
  for (uint64_t tag = 1; tag < 9; tag += 4) {
    transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, tag);
    EXPECT_TRUE(Await(transport.get()).status.ok());
    server.reset();
    for (uint64_t away = 1; away < 3; ++away) {
      transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, tag + away);
      const absl::Status status = Await(transport.get()).status;
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0 at " + address));
    }
    server = std::make_unique<Server>(Echo, address);
  }
}

TEST_P(BulkTransportTest, AShardThatIsNotReadyIsNamed) {
  auto server = std::make_unique<Server>(
      [](BulkMethod, ByteRope) { return absl::UnavailableError("the shard is not ready"); });
  const auto transport = Connect({server->address()});
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 1);
  EXPECT_EQ(Await(transport.get()).status,
            absl::UnavailableError(
                absl::StrCat("ps-0 at ", server->address(), ": the shard is not ready")));
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

TEST_P(BulkTransportTest, RequestsAreReleasedBeforeTheirAnswersAreReturned) {
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

TEST_P(BulkTransportTest, ResetEndsCallsAndReleasesTheirRequests) {
  Gate gate;
  Server server([&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  });
  const std::string memory(4 << 20, 'x');
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

TEST_P(BulkTransportTest, EndsWithCallsUnderWay) {
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

TEST_P(BulkTransportTest, DeadlinesAreTransient) {
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

TEST_P(BulkTransportTest, ARedirectedShardIsCalledAtItsNewServer) {
  Gate gate;
  const auto wait = [&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  };
  Server before(wait);
  Server other(wait);
  Server after(Echo);
  const std::string memory(4 << 20, 'x');
  std::atomic<int> held{0};
  const auto transport = Connect({before.address(), other.address()});
  transport->Start(0, BulkMethod::kPush, Counted(memory, &held), kLong, 1);
  transport->Start(1, BulkMethod::kPush, RopeOf("mine"), kLong, 2);
  transport->Redirect(0, {"ps-7", after.address()});
  const BulkCompletion given_up = Await(transport.get());
  EXPECT_EQ(given_up.tag, 1u);
  EXPECT_TRUE(absl::IsUnavailable(given_up.status)) << given_up.status;
  while (held > 0) transport->Next(absl::Milliseconds(1));
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 3);
  EXPECT_EQ(Await(transport.get()).response.ToString(), "Pull a");
  gate.Open();
  EXPECT_EQ(Await(transport.get()).response.ToString(), "mine");
  after.Shutdown();
  transport->Start(0, BulkMethod::kPull, RopeOf("b"), kLong, 4);
  const absl::Status away = Await(transport.get()).status;
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_THAT(std::string(away.message()), HasSubstr("ps-7 at " + after.address()));
}

// A server to which memory does not lead.
constexpr char kAnyPort[] = "127.0.0.1:0";

TEST(NearestBulkTransportTest, AllShardsLeaveMemoryWithOneThatItDoesNotLeadTo) {
  Gate gate;
  Server first(Echo);
  Server second([&](BulkMethod method, ByteRope request) {
    gate.Enter();
    return Echo(method, std::move(request));
  });
  Server far(Echo, kAnyPort);
  const auto transport =
      ConnectBulkTransport(ServersAt({first.address(), second.address()}), Credentials(), 4);
  transport->Start(0, BulkMethod::kPull, RopeOf("a"), kLong, 1);
  transport->Start(1, BulkMethod::kPull, RopeOf("b"), kLong, 2);
  gate.AwaitEntered();
  transport->Redirect(0, {"far", far.address()});
  std::set<uint64_t> ended;
  for (int i = 0; i < 2; ++i) ended.insert(Await(transport.get()).tag);
  EXPECT_EQ(ended, (std::set<uint64_t>{1, 2}));
  gate.Open();
  for (size_t shard = 0; shard < 2; ++shard) {
    transport->Start(shard, BulkMethod::kPull, RopeOf("c"), kLong, 3 + shard);
    EXPECT_EQ(Await(transport.get()).response.ToString(), "Pull c");
  }
  transport->Redirect(1, {"near", first.address()});
  transport->Reset(0);
  for (size_t shard = 0; shard < 2; ++shard) {
    transport->Start(shard, BulkMethod::kPush, RopeOf("d"), kLong, 5 + shard);
    EXPECT_EQ(Await(transport.get()).response.ToString(), "Push d");
  }
}

TEST(NearestBulkTransportTest, AWakeDuringTheMoveIsNotLost) {
  Server first(Echo);
  Server far(Echo, kAnyPort);
  const auto transport = ConnectBulkTransport(ServersAt({first.address()}), Credentials(), 4);
  transport->Wake();
  transport->Redirect(0, {"far", far.address()});
  EXPECT_FALSE(transport->Next(kLong).has_value());
}

TEST(MemoryBulkTransportTest, LeadsToServersOfThisMachineAlone) {
  Server server(Echo);
  for (const std::string& other : {std::string("localhost:1"), std::string("10.0.0.7:2222")}) {
    const auto transport =
        MemoryBulkTransport::Connect(ServersAt({server.address(), other}), Claim(), 1);
    EXPECT_TRUE(absl::IsUnavailable(transport.status())) << transport.status();
  }
}

TEST(MemoryBulkTransportTest, TakesNoMoreCallsThanItHasRoomFor) {
  Gate gate;
  Server server([&](BulkMethod, ByteRope request) -> absl::StatusOr<ByteRope> {
    gate.Enter();
    return request;
  });
  const auto transport = ConnectMemory({server.address()});
  for (uint64_t tag = 0; tag < 5; ++tag) {
    transport->Start(0, BulkMethod::kPush, RopeOf("x"), kLong, tag);
  }
  const BulkCompletion refused = Await(transport.get());
  EXPECT_EQ(refused.tag, 4u);
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("at most 4 calls at a time"));
  gate.Open();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Await(transport.get()).status.ok());
}

// ---- The whole client.

// Answers every call at once.
class NamedHandler : public BulkHandler {
 public:
  explicit NamedHandler(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<ByteRope> Bulk(BulkMethod, ByteRope) override { return RopeOf(name_); }

 private:
  const std::string name_;
};

// Starts a call of each shard; returns who answers, by shard.
std::map<uint64_t, std::string> AnswersOf(BulkTransport* transport) {
  for (size_t s = 0; s < transport->num_shards(); ++s) {
    transport->Start(s, BulkMethod::kPush, RopeOf("x"), kLong, s);
  }
  std::map<uint64_t, std::string> answers;
  for (size_t s = 0; s < transport->num_shards(); ++s) {
    const BulkCompletion completion = Await(transport);
    answers[completion.tag] = completion.response.ToString();
  }
  return answers;
}

using Answers = std::map<uint64_t, std::string>;

TEST(OwnShardTransportTest, ShardsAtTheProcesssAddressAreItsOwn) {
  NamedHandler own("own"), remote("remote");
  OwnShardTransport transport(
      {"me:1", {{0, &own}, {1, &own}}}, {{"a", "other:1"}, {"b", "me:1"}, {"c", "me:1"}},
      std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{&remote, &remote, &remote}));
  EXPECT_EQ(transport.num_shards(), 3);
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "remote"}, {1, "own"}, {2, "remote"}}))
      << "there is no handler for shard 2";
}

TEST(OwnShardTransportTest, ShardsComeAndGo) {
  NamedHandler own("own");
  Server other(Echo);
  OwnShardTransport transport({"me:1", {{0, &own}, {1, &own}}},
                              {{"a", "me:1"}, {"b", other.address()}},
                              ConnectGrpc({"me:1", other.address()}));
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "own"}, {1, "Push x"}}));
  transport.Redirect(1, {"a", "me:1"});
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "own"}, {1, "own"}}));
  transport.Redirect(0, {"b", other.address()});
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "Push x"}, {1, "own"}}));
}

TEST(OwnShardTransportTest, MemoryIsNotAskedForTheOwnShards) {
  NamedHandler own("own");
  Server other(Echo), third(Echo);
  const std::string self = FreeAddress();  // where nobody listens
  const std::vector<BulkServer> servers = ServersAt({self, other.address()});
  OwnShardTransport transport({self, {{0, &own}, {1, &own}}}, servers,
                              ConnectBulkTransport(servers, Credentials(), 4, {}, {0}));
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "own"}, {1, "Push x"}}));
  transport.Redirect(1, {"a", self});
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "own"}, {1, "own"}}));
  transport.Redirect(0, {"b", third.address()});
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "Push x"}, {1, "own"}}));
}

TEST(OwnShardTransportTest, TheOthersAreCalledAndResetOverTheirConnections) {
  NamedHandler own("own");
  auto server = std::make_unique<Server>(Echo);
  const std::string address = server->address();
  OwnShardTransport transport({"me:1", {{0, &own}}}, ServersAt({"me:1", address}),
                              ConnectGrpc({"me:1", address}));
  transport.Start(1, BulkMethod::kPull, RopeOf("a"), kLong, 1);
  EXPECT_EQ(Await(&transport).response.ToString(), "Pull a");
  server.reset();
  server = std::make_unique<Server>(Echo, address);
  transport.Reset(0);
  transport.Reset(1);
  transport.Start(1, BulkMethod::kPull, RopeOf("b"), kLong, 2);
  EXPECT_EQ(Await(&transport).response.ToString(), "Pull b");
  transport.Wake();
  EXPECT_FALSE(transport.Next(kLong).has_value());
}

// Does not answer before Wake.
class WaitingHandler : public NamedHandler {
 public:
  using NamedHandler::NamedHandler;
  bool MayAnswer(BulkMethod, const ByteRope&, std::function<void()> wake) override {
    MutexLock lock(&mu_);
    if (ready_) return true;
    wake_ = std::move(wake);
    return false;
  }
  void Wake(bool ready = true) {
    MutexLock lock(&mu_);
    ready_ = ready;
    wake_();
  }

 private:
  Mutex mu_;
  bool ready_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> wake_ ABSL_GUARDED_BY(mu_);
};

TEST(InlineBulkTransportTest, ACallThatWaitsIsAnsweredWhenItIsWoken) {
  WaitingHandler own("own");
  InlineBulkTransport transport({&own});
  transport.Start(0, BulkMethod::kPull, RopeOf("x"), kLong, 7);
  EXPECT_FALSE(transport.Next(absl::ZeroDuration()).has_value());
  own.Wake(/*ready=*/false);
  EXPECT_FALSE(transport.Next(absl::ZeroDuration()).has_value()) << "it was woken too early";
  std::thread commits([&] { own.Wake(); });
  std::optional<BulkCompletion> answer;
  while (!answer.has_value()) answer = transport.Next(kLong);
  commits.join();
  EXPECT_EQ(answer->tag, 7u);
  EXPECT_EQ(answer->response.ToString(), "own");
}

TEST(InlineBulkTransportTest, ACallThatWaitsEndsWithAReset) {
  WaitingHandler own("own");
  {
    InlineBulkTransport transport({&own});
    transport.Start(0, BulkMethod::kPull, RopeOf("x"), kLong, 7);
    transport.Reset(0);
    EXPECT_TRUE(absl::IsUnavailable(transport.Next(kLong)->status));
    transport.Start(0, BulkMethod::kPull, RopeOf("x"), kLong, 8);
  }
  own.Wake();  // nobody waits
}

TEST(OwnShardTransportTest, ACallThatWaitsEndsTheWaitForTheOthers) {
  WaitingHandler own("own");
  NamedHandler remote("remote");
  OwnShardTransport transport(
      {"me:1", {{0, &own}}}, {{"a", "me:1"}, {"b", "other:1"}},
      std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{&remote, &remote}));
  transport.Start(0, BulkMethod::kPull, RopeOf("x"), kLong, 1);
  std::thread commits([&] { own.Wake(); });
  std::optional<BulkCompletion> answer;
  while (!answer.has_value()) answer = transport.Next(kLong);
  commits.join();
  EXPECT_EQ(answer->response.ToString(), "own");
}

TEST(InlineBulkTransportTest, HandlersStay) {
  NamedHandler own("own");
  InlineBulkTransport transport({&own});
  transport.Redirect(0, {"b", "other:1"});
  EXPECT_EQ(AnswersOf(&transport), (Answers{{0, "own"}}));
}

class ConnectParameterClientTest : public testing::TestWithParam<std::tuple<int, LocalRoute>> {};

INSTANTIATE_TEST_SUITE_P(DepthsAndRoutes, ConnectParameterClientTest,
                         testing::Combine(testing::Values(1, 2),
                                          testing::Values(LocalRoute::kMemory, LocalRoute::kUnix,
                                                          LocalRoute::kTcp)));

TEST_P(ConnectParameterClientTest, TrainsOverConnections) {
  const std::vector<VariableSpec> variables = {{"a", Shape({900, 1000}), {}},
                                               {"b", Shape({2000, 1000}), {}}};
  const Placement placement = Placement::Compute(variables, 2);
  FakeShard first(&placement), second(&placement);
  Server server_a([&](BulkMethod m, ByteRope r) { return first.Bulk(m, std::move(r)); });
  Server server_b([&](BulkMethod m, ByteRope r) { return second.Bulk(m, std::move(r)); });
  StopSignal stop;
  ShardedParameterClient::Options options;
  options.depth = std::get<0>(GetParam());
  options.background = options.depth == 2;
  auto client = ConnectParameterClient(
      options, variables, placement, ServersAt({server_a.address(), server_b.address()}),
      Credentials(), Clock::Real(), &stop,
      BulkConnectionOptions{/*connections=*/2, std::get<1>(GetParam())});
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

// The first server of the second shard applies a push, does not answer it, and is left.
TEST_P(ConnectParameterClientTest, AShardMovesWhileTheClientWaitsForIt) {
  const std::vector<VariableSpec> variables = {{"a", Shape({900, 1000}), {}},
                                               {"b", Shape({2000, 1000}), {}}};
  const Placement placement = Placement::Compute(variables, 2);
  FakeShard first(&placement), second(&placement);
  Mutex mu;
  const auto serve = [&](FakeShard* shard, BulkMethod method, ByteRope request) {
    MutexLock lock(&mu);
    return shard->Bulk(method, std::move(request));
  };
  Gate gate;
  Server server_a([&](BulkMethod m, ByteRope r) { return serve(&first, m, std::move(r)); });
  Server server_b([&](BulkMethod m, ByteRope r) {
    absl::StatusOr<ByteRope> answer = serve(&second, m, std::move(r));
    if (m != BulkMethod::kPull) gate.Enter();
    return answer;
  });
  Server server_c([&](BulkMethod m, ByteRope r) { return serve(&second, m, std::move(r)); });
  StopSignal stop;
  ShardedParameterClient::Options options;
  options.depth = std::get<0>(GetParam());
  options.background = options.depth == 2;
  options.retry.first_pause = options.retry.longest_pause = absl::Hours(1);
  auto client = ConnectParameterClient(
      options, variables, placement, ServersAt({server_a.address(), server_b.address()}),
      Credentials(), Clock::Real(), &stop, BulkConnectionOptions{1, std::get<1>(GetParam())});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Pull().ok());
  std::thread mover([&] {
    gate.AwaitEntered();
    (*client)->SetServers(ServersAt({server_a.address()}));  // ignored
    (*client)->SetServers(ServersAt({server_a.address(), server_c.address()}));
  });
  for (int step = 0; step < 3; ++step) {
    (*client)->Begin(step);
    for (const size_t v : {1, 0}) {
      const absl::Span<float> gradient = (*client)->gradients()[v];
      std::fill(gradient.begin(), gradient.end(), 1.0f);
    }
    const auto result = (*client)->End();
    ASSERT_TRUE(result.ok()) << result.status();
  }
  ASSERT_TRUE((*client)->Drain().ok());
  mover.join();
  gate.Open();
  for (const absl::Span<float> values : (*client)->values()) {
    EXPECT_EQ(std::count(values.begin(), values.end(), -2.0f), static_cast<int64_t>(values.size()));
  }
}

}  // namespace
}  // namespace keelson
