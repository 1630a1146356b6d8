#include "ps_server/service/parameter_grpc_service.h"

#include <grpcpp/create_channel.h>

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "ps_server/service/loopback_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(ParameterGrpcServiceTest, MessagesBeyondGrpcsDefaultLimitPass) {
  const Placement placement = Placement::Compute({{"w", Shape({1100, 1000}), {}}}, 1);
  TestServer server;
  const LoopbackServer loopback(&server.handler);
  const std::unique_ptr<BulkHandler> client = loopback.ConnectBulk();
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(loopback.Connect()->Initialize(InitializeRequest(placement, 0), &initialized).ok());
  const auto pushed =
      CallBulk(client.get(), BulkMethod::kPush, ConstantPushOf(placement, 0, 1, 1, 2.0f));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  const auto pulled = CallBulk(client.get(), BulkMethod::kPull, PullOf(placement, 0));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->payload, BytesOf(std::vector<float>(1'100'000, -2 * kTestLearningRate)));
}

TEST(ParameterGrpcServiceTest, ServerThatIsGoneIsUnavailableByName) {
  TestServer server;
  LoopbackServer loopback(&server.handler);
  const std::unique_ptr<ParameterControl> client = loopback.Connect();
  v1::ShardStatus response;
  ASSERT_TRUE(client->GetStatus({}, &response).ok());
  const std::string address = loopback.address();
  loopback.Shutdown();
  const absl::Status status = client->GetStatus({}, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0 at " + address));
}

// One thread serves the connections of both.
TEST(ParameterGrpcServiceTest, APullWaitsForItsRoundWhileOthersPush) {
  const Placement placement = TestPlacement(1);
  TestServer server;
  const LoopbackServer loopback(&server.handler);
  const std::unique_ptr<BulkHandler> waiting = loopback.ConnectBulk();
  const std::unique_ptr<BulkHandler> pushing = loopback.ConnectBulk();
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(server.handler.Initialize(InitializeRequest(placement, 0), &initialized).ok());
  for (int64_t round = 0; round < 20; ++round) {
    std::thread pulls([&] {
      TestRequest pull = PullOf(placement, 0);
      pull.header.step = round + 1;
      const auto pulled = CallBulk(waiting.get(), BulkMethod::kPull, pull);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      EXPECT_EQ(pulled->header.shard_step, round + 1);
    });
    const auto sequence = static_cast<uint64_t>(round) + 1;
    EXPECT_TRUE(CallBulk(pushing.get(), BulkMethod::kPush,
                         StagedPushOf(placement, 0, 1, sequence, {round, 1}, 1, 2))
                    .ok());
    EXPECT_TRUE(CommitRound(&server.handler, {round, 1}, 1).ok());
    pulls.join();
  }
}

TEST(ParameterGrpcServiceTest, ManyClientsAtOnce) {
  constexpr uint64_t kClients = 3;
  constexpr uint64_t kPushes = 15;
  const Placement placement = TestPlacement(1);
  TestServer server;
  const LoopbackServer loopback(&server.handler, /*threads=*/2);
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(server.handler.Initialize(InitializeRequest(placement, 0), &initialized).ok());
  std::vector<std::thread> threads;
  for (uint64_t c = 1; c <= kClients; ++c) {
    threads.emplace_back([&, c] {
      const std::unique_ptr<BulkHandler> client = loopback.ConnectBulk();
      for (uint64_t s = 1; s <= kPushes; ++s) {
        const auto pushed =
            CallBulk(client.get(), BulkMethod::kPush, ConstantPushOf(placement, 0, c, s, 1));
        EXPECT_TRUE(pushed.ok()) << pushed.status();
        const auto pulled = CallBulk(client.get(), BulkMethod::kPull, PullOf(placement, 0));
        ASSERT_TRUE(pulled.ok()) << pulled.status();
        Arrays arrays;
        Receive(placement, *pulled, &arrays);
        EXPECT_EQ(arrays["dense/bias"], std::vector<float>(17, arrays["dense/bias"][0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto pulled = CallBulk(&server.handler, BulkMethod::kPull, PullOf(placement, 0));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  Arrays arrays;
  Receive(placement, *pulled, &arrays);
  EXPECT_EQ(arrays["scale"], std::vector<float>{0.25f - kTestLearningRate * kClients * kPushes});
}

// What any language's generated code does: messages of the plain .proto, no codec of Keelson's.
class GeneratedStubTest : public testing::Test {
 protected:
  GeneratedStubTest() {
    for (TestServer* server : {&server_, &same_}) {
      v1::InitializeShardResponse initialized;
      EXPECT_TRUE(
          server->handler.Initialize(InitializeRequest(placement_, 0, "adam {}"), &initialized)
              .ok());
    }
  }

  template <typename Request>
  static Request Parse(const TestRequest& request) {
    Request parsed;
    EXPECT_TRUE(parsed.ParseFromString(MessageOf(request).ToString()));
    return parsed;
  }
  // The handler's own answer to the same message, from a server in the same state. Each server
  // draws its own store id.
  template <typename Response>
  void ExpectSame(BulkMethod method, const TestRequest& request, Response response) {
    const auto expected = same_.handler.Bulk(method, MessageOf(request));
    ASSERT_TRUE(expected.ok()) << expected.status();
    Response parsed;
    ASSERT_TRUE(parsed.ParseFromString(expected->ToString()));
    EXPECT_NE(response.store_id(), 0u);
    response.set_store_id(parsed.store_id());
    EXPECT_EQ(response.SerializeAsString(), expected->ToString());
  }

  // Large enough for blocks that are sent in place, beside small ones.
  const Placement placement_ = Placement::Compute(
      {{"large", Shape({700, 1000}), {}}, {"small", Shape({3, 5}), {}}, {"scale", Shape({}), {}}},
      1);
  TestServer server_;
  TestServer same_;
  const LoopbackServer loopback_{&server_.handler};
  const std::unique_ptr<v1::ParameterService::Stub> stub_ = v1::ParameterService::NewStub(
      grpc::CreateChannel(loopback_.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context_;
};

TEST_F(GeneratedStubTest, PullGetsTheSameBytes) {
  const TestRequest request = PullOf(placement_, 0);
  v1::PullResponse response;
  const grpc::Status status = stub_->Pull(&context_, Parse<v1::PullRequest>(request), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.blocks_size(), 5);
  EXPECT_EQ(static_cast<int64_t>(response.payload().size()), placement_.ShardBytes(0));
  ExpectSame(BulkMethod::kPull, request, response);
}

TEST_F(GeneratedStubTest, PushGetsTheSameBytesAndIsApplied) {
  const TestRequest request =
      EncodedPushOf(placement_, 0, 3, 1, WireFormat::kInt8, WireFormat::kFloat32);
  v1::PushResponse response;
  const grpc::Status status = stub_->Push(&context_, Parse<v1::PushRequest>(request), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.shard_step(), 1);
  ExpectSame(BulkMethod::kPush, request, response);
  const auto values = CallBulk(&server_.handler, BulkMethod::kPull, PullOf(placement_, 0));
  const auto expected = CallBulk(&same_.handler, BulkMethod::kPull, PullOf(placement_, 0));
  ASSERT_TRUE(values.ok() && expected.ok());
  EXPECT_EQ(values->payload, expected->payload);
}

TEST_F(GeneratedStubTest, PushPullGetsTheSameBytes) {
  const TestRequest request =
      EncodedPushOf(placement_, 0, 3, 1, WireFormat::kFloat32, WireFormat::kBfloat16);
  v1::PushPullResponse response;
  const grpc::Status status =
      stub_->PushPull(&context_, Parse<v1::PushRequest>(request), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(static_cast<int64_t>(response.payload().size()), placement_.ShardBytes(0) / 2);
  ExpectSame(BulkMethod::kPushPull, request, response);
}

TEST_F(GeneratedStubTest, RefusalArrivesWithItsText) {
  TestRequest request = PushOf(placement_, 0, 3, 1);
  request.payload.pop_back();
  v1::PushResponse response;
  const grpc::Status status = stub_->Push(&context_, Parse<v1::PushRequest>(request), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("push: variable small, block 0: expected 60 bytes, "
                                                "found 59 left"));
}

// A peer that opens a stream and then does nothing.
class SilentPeerTest : public testing::Test {
 protected:
  ~SilentPeerTest() override {
    ended_ = true;
    if (passing_.joinable()) passing_.join();
  }

  // From here on the server's time goes by, fast.
  void PassTime() {
    passing_ = std::thread([this] {
      while (!ended_) {
        server_.clock.Advance(absl::Seconds(1));
        std::this_thread::yield();
      }
    });
  }
  void AwaitState(v1::ShardStatus::State state) {
    while (StatusOf(&server_.handler).state() != state) std::this_thread::yield();
  }

  // Larger than what gRPC buffers for a reader that does not read.
  const Placement placement_ = Placement::Compute({{"w", Shape({4000, 1000}), {}}}, 1);
  TestServer server_;
  const LoopbackServer loopback_{&server_.handler, 1, &server_.clock};
  const std::unique_ptr<v1::ParameterService::Stub> stub_ = v1::ParameterService::NewStub(
      grpc::CreateChannel(loopback_.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context_;
  std::atomic<bool> ended_{false};
  std::thread passing_;
};

TEST_F(SilentPeerTest, ThatSendsNoFirstMessageIsCutOff) {
  v1::InitializeShardResponse response;
  const auto writer = stub_->InitializeStreamed(&context_, &response);
  PassTime();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SilentPeerTest, ThatSendsNoBlocksIsCutOffAndTheServerIsEmptyAgain) {
  v1::InitializeShardResponse response;
  const auto writer = stub_->InitializeStreamed(&context_, &response);
  v1::InitializeChunk first;
  *first.mutable_start() = InitializeRequest(placement_, 0);
  ASSERT_TRUE(writer->Write(first));
  AwaitState(v1::ShardStatus::INITIALIZING);
  PassTime();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitState(v1::ShardStatus::EMPTY);
  EXPECT_EQ(server_.handler.Initialize(first.start(), &response), absl::OkStatus());
}

TEST_F(SilentPeerTest, ThatTakesNoBytesOfASnapshotIsCutOff) {
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(server_.handler.Initialize(InitializeRequest(placement_, 0), &initialized).ok());
  v1::StreamSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  const auto reader = stub_->StreamSnapshot(&context_, request);
  PassTime();
  while (server_.handler.figures().failed_snapshots == 0) std::this_thread::yield();
  v1::SnapshotChunk chunk;
  while (reader->Read(&chunk)) EXPECT_FALSE(chunk.has_end());
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace keelson
