// RawCallQueue against a RawServer, and against what generated code serves.
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/raw_client.h"
#include "core/rpc/raw_server.h"
#include "core/rpc/server.h"
#include "core/rpc/stalled_call_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kPush[] = "/keelson.v1.ParameterService/Push";
constexpr absl::Duration kLong = absl::Seconds(60);

using RawPush = v1::ParameterService::WithGenericMethod_Push<v1::ParameterService::Service>;

// Answers Push with what `handle` says, and GetStatus through generated code.
class EchoServer : public RawPush {
 public:
  explicit EchoServer(std::function<absl::StatusOr<ByteRope>(ByteRope)> handle,
                      const std::string& address = "127.0.0.1:0", int threads = 1,
                      RawServing raw = {}) {
    RawMethod push;
    if (!raw.methods.empty()) push = raw.methods.front();
    push.name = kPush;
    push.handle = std::move(handle);
    raw.methods = {push};
    raw.threads = threads;
    auto server =
        RpcServer::Start(address, grpc::InsecureServerCredentials(), {this}, std::move(raw));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~EchoServer() override { server_.reset(); }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetShardStatusRequest*,
                         v1::ShardStatus* response) override {
    response->set_shard_step(7);
    return grpc::Status::OK;
  }

  int port() const { return server_->port(); }
  std::shared_ptr<grpc::Channel> Connect() const {
    return CreateChannel(absl::StrCat("127.0.0.1:", port()), grpc::InsecureChannelCredentials());
  }
  void Shutdown() { server_->Shutdown(absl::ZeroDuration()); }

 private:
  std::unique_ptr<RpcServer> server_;
};

absl::StatusOr<ByteRope> Echo(ByteRope request) { return request; }

ByteRope Rope(const std::string& bytes) {
  ByteRope rope;
  rope.AppendCopy(bytes);
  return rope;
}

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 977);
  return bytes;
}

TEST(RawCallsTest, MessagesOfEverySizeComeBackWhole) {
  EchoServer server(Echo);
  const auto channel = server.Connect();
  RawCallQueue calls;
  for (const size_t size : {0, 1, 23, 24, 16383, 16384, 70000, 4 << 20, (4 << 20) + 100}) {
    const std::string bytes = Pattern(size);
    calls.Start(channel, kPush, Rope(bytes), kLong, size);
    const auto done = calls.Next(kLong);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->status.ok()) << done->status.error_message();
    EXPECT_EQ(done->tag, size);
    EXPECT_TRUE(done->response.ToString() == bytes) << size;
  }
}

TEST(RawCallsTest, ManyCallsAreUnderWayAtATime) {
  EchoServer server(Echo, "127.0.0.1:0", 2);
  const std::shared_ptr<grpc::Channel> channels[] = {server.Connect(), server.Connect()};
  RawCallQueue calls;
  std::map<uint64_t, std::string> expected;
  for (uint64_t tag = 0; tag < 40; ++tag) {
    expected[tag] = Pattern(1000 * tag + 1);
    calls.Start(channels[tag % 2], kPush, Rope(expected[tag]), kLong, tag);
  }
  while (!expected.empty()) {
    const auto done = calls.Next(kLong);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->status.ok());
    EXPECT_TRUE(done->response.ToString() == expected[done->tag]);
    expected.erase(done->tag);
  }
}

// Calls wait until Open.
class Gate {
 public:
  RawServing Serving() {
    RawServing raw;
    raw.methods.emplace_back().may_answer = [this](const ByteRope&, std::function<void()> wake) {
      MutexLock lock(&mu_);
      if (open_) return true;
      waiting_.push_back(std::move(wake));
      changed_.NotifyAll();
      return false;
    };
    return raw;
  }
  void AwaitWaiting(size_t count) {
    MutexLock lock(&mu_);
    while (waiting_.size() < count) changed_.Wait(&mu_);
  }
  void Open(bool open = true) {
    std::vector<std::function<void()>> waiting;
    {
      MutexLock lock(&mu_);
      open_ = open;
      waiting.swap(waiting_);
    }
    for (const std::function<void()>& wake : waiting) wake();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

TEST(RawCallsTest, CallsThatWaitAreAnsweredWhenTheyAreWoken) {
  Gate gate;
  EchoServer server(Echo, "127.0.0.1:0", 1, gate.Serving());
  const auto channel = server.Connect();
  RawCallQueue calls;
  for (const uint64_t tag : {1, 2}) {
    calls.Start(channel, kPush, Rope(absl::StrCat(tag)), kLong, tag);
  }
  gate.AwaitWaiting(2);
  gate.Open(/*open=*/false);  // they are asked again, and wait again
  gate.AwaitWaiting(2);
  gate.Open();
  for (int i = 0; i < 2; ++i) {
    const auto done = calls.Next(kLong);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->status.ok()) << done->status.error_message();
    EXPECT_EQ(done->response.ToString(), absl::StrCat(done->tag));
  }
}

TEST(RawCallsTest, AServerThatEndsRefusesCallsThatWait) {
  Gate gate;
  RawCallQueue calls;
  {
    EchoServer server(Echo, "127.0.0.1:0", 1, gate.Serving());
    calls.Start(server.Connect(), kPush, Rope("x"), kLong, 1);
    gate.AwaitWaiting(1);
    server.Shutdown();
  }
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  gate.Open();  // nobody waits
}

TEST(RawCallsTest, ACallerMayGoWhileItsCallWaits) {
  Gate gate;
  EchoServer server(Echo, "127.0.0.1:0", 1, gate.Serving());
  {
    RawCallQueue calls;
    calls.Start(server.Connect(), kPush, Rope("x"), kLong, 1);
    gate.AwaitWaiting(1);
  }
  gate.Open();
  RawCallQueue calls;
  calls.Start(server.Connect(), kPush, Rope("y"), kLong, 2);
  EXPECT_EQ(calls.Next(kLong)->response.ToString(), "y");
}

TEST(RawCallsTest, AnErrorComesWithItsCodeAndText) {
  EchoServer server([](ByteRope) { return absl::InvalidArgumentError("no such block"); });
  RawCallQueue calls;
  calls.Start(server.Connect(), kPush, Rope("x"), kLong, 1);
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(FromGrpcStatus(done->status, "ps-0"), absl::InvalidArgumentError("no such block"));
}

TEST(RawCallsTest, OrdinaryMethodsAreServedBeside) {
  EchoServer server(Echo);
  const auto stub = v1::ParameterService::NewStub(server.Connect());
  grpc::ClientContext context;
  v1::ShardStatus status;
  ASSERT_TRUE(stub->GetStatus(&context, {}, &status).ok());
  EXPECT_EQ(status.shard_step(), 7);
}

TEST(RawCallsTest, GeneratedStubsReachARawMethod) {
  // The bytes of the request, read as the response: shard_step = 5 in both.
  EchoServer server([](ByteRope) {
    v1::PushResponse response;
    response.set_shard_step(5);
    ByteRope rope;
    rope.AppendOwned(response.SerializeAsString());
    return rope;
  });
  const auto stub = v1::ParameterService::NewStub(server.Connect());
  grpc::ClientContext context;
  v1::PushRequest request;
  request.set_payload(std::string(100000, 'p'));
  v1::PushResponse response;
  ASSERT_TRUE(stub->Push(&context, request, &response).ok());
  EXPECT_EQ(response.shard_step(), 5);
}

// When its memory is scarce, gRPC takes some back on the thread that frees some.
TEST(RawCallsTest, MessagesAreFreedWhenMemoryIsScarce) {
  constexpr uint64_t kChannels = 8;
  constexpr uint64_t kCalls = 400;
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("small");
  quota.Resize(16 << 20);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(-1);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  std::vector<ByteRope> held;
  const auto hold = [&held](ByteRope request) {
    held.push_back(std::move(request));
    if (held.size() == 10) held.clear();
    return ByteRope();
  };
  RawServer raw({.methods = {{kPush, hold}}}, &builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  raw.Start();
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (uint64_t i = 0; i < kChannels; ++i) {
    channels.push_back(
        CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  const std::string message = Pattern(1 << 20);
  RawCallQueue calls;
  for (uint64_t tag = 0; tag < kCalls; ++tag) {
    calls.Start(channels[tag % kChannels], kPush, Rope(message), kLong, tag);
  }
  int answered = 0;
  for (uint64_t i = 0; i < kCalls; ++i) {
    const auto done = calls.Next(kLong);
    ASSERT_TRUE(done.has_value());
    answered += done->status.ok() ? 1 : 0;
  }
  EXPECT_GT(answered, 0) << "others are cancelled";
  raw.BeginShutdown();
  server->Shutdown();
  raw.Shutdown();
}

TEST(RawCallsTest, WakeEndsAWait) {
  RawCallQueue calls;
  std::thread waker([&] { calls.Wake(); });
  EXPECT_FALSE(calls.Next(kLong).has_value());
  waker.join();
  // Once only, and again when asked again.
  EXPECT_FALSE(calls.Next(absl::ZeroDuration()).has_value());
  calls.Wake();
  EXPECT_FALSE(calls.Next(kLong).has_value());
}

TEST(RawCallsTest, ADeadlinePasses) {
  Mutex mu;
  CondVar changed;
  bool released = false;
  EchoServer server([&](ByteRope request) -> absl::StatusOr<ByteRope> {
    MutexLock lock(&mu);
    while (!released) changed.Wait(&mu);
    return request;
  });
  RawCallQueue calls;
  calls.Start(server.Connect(), kPush, Rope("x"), absl::Milliseconds(20), 1);
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  MutexLock lock(&mu);
  released = true;
  changed.NotifyAll();
}

TEST(RawCallsTest, DestructionCancelsWhatIsUnderWay) {
  // No server listens at this address.
  RawCallQueue calls;
  calls.Start(CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()), kPush, Rope("x"),
              kLong, 1);
}

TEST(RawCallsTest, ARequestThatIsTooLargeIsNotHandled) {
  std::atomic<int> handled = 0;
  EchoServer server([&](ByteRope request) {
    ++handled;
    return request;
  });
  RawCallQueue calls;
  calls.Start(server.Connect(), kPush, Rope(std::string(6 << 20, 'x')), kLong, 1);
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(done->status.error_message(), HasSubstr("Push: expected a request of at most"));
  EXPECT_THAT(done->status.error_message(), HasSubstr("found 6291456"));
  EXPECT_EQ(handled, 0);
}

TEST(RawCallsTest, MethodsThatNobodyServesAreUnimplemented) {
  EchoServer server(Echo);
  RawCallQueue calls;
  calls.Start(server.Connect(), "/keelson.v1.ParameterService/Erase", Rope("x"), kLong, 1);
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(RawCallsTest, RequestsThatDoNotEndGiveWayToThoseThatWait) {
  RawServing serving;
  serving.receive_budget_bytes = MaxRequestBytes(kPush);  // one at a time
  serving.receive_limit = absl::Milliseconds(500);
  EchoServer server(Echo, "127.0.0.1:0", 1, std::move(serving));
  StalledCall stalled(server.Connect(), kPush);
  RawCallQueue calls;
  const auto channel = server.Connect();
  for (uint64_t tag = 0; tag < 5; ++tag) calls.Start(channel, kPush, Rope("x"), kLong, tag);
  for (int i = 0; i < 5; ++i) {
    const auto done = calls.Next(kLong);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->status.ok()) << done->status.error_message();
  }
}

TEST(RawCallsTest, CallsThatWaitForRoomEndWithTheServer) {
  RawServing serving;
  serving.receive_budget_bytes = MaxRequestBytes(kPush);
  EchoServer server(Echo, "127.0.0.1:0", 1, std::move(serving));
  const auto channel = server.Connect();
  RawCallQueue calls;
  // Connects.
  calls.Start(channel, kPush, Rope("x"), kLong, 0);
  ASSERT_TRUE(calls.Next(kLong).has_value());
  StalledCall first(channel, kPush);
  StalledCall second(channel, kPush);
  server.Shutdown();
  EXPECT_FALSE(first.Await().ok());
  EXPECT_FALSE(second.Await().ok());
}

TEST(RawCallsTest, AStrangersRequestIsNotReceived) {
  const AccessGuard guard({"0123456789abcdef", ""});
  RawServing serving;
  serving.guard = &guard;
  EchoServer server(Echo, "127.0.0.1:0", 1, std::move(serving));
  StalledCall stranger(server.Connect(), kPush);
  EXPECT_EQ(stranger.Await().error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "before it has sent anything";
}

TEST(RawCallsTest, AfterShutdownCallsAreUnavailable) {
  EchoServer server(Echo);
  const auto channel = server.Connect();
  RawCallQueue calls;
  calls.Start(channel, kPush, Rope("x"), kLong, 1);
  ASSERT_TRUE(calls.Next(kLong).has_value());
  server.Shutdown();
  calls.Start(channel, kPush, Rope("x"), kLong, 2);
  const auto done = calls.Next(kLong);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace keelson
