#include "ps_server/parameter_grpc_service.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/loopback_testing.h"
#include "ps_server/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(ParameterGrpcServiceTest, MessagesBeyondGrpcsDefaultLimitPass) {
  const Placement placement = Placement::Compute({{"w", Shape({2000, 1000}), {}}}, 1);
  TestServer server;
  const LoopbackServer loopback(&server.handler);
  const std::unique_ptr<ParameterService> client = loopback.Connect();
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(client->Initialize(InitializeRequest(placement, 0), &initialized).ok());
  v1::PushResponse pushed;
  absl::Status status = client->Push(ConstantPushOf(placement, 0, 1, 1, 2.0f), &pushed);
  ASSERT_TRUE(status.ok()) << status;
  v1::PullResponse pulled;
  status = client->Pull(PullOf(placement, 0), &pulled);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(pulled.payload(), BytesOf(std::vector<float>(2'000'000, -2 * kTestLearningRate)));
}

TEST(ParameterGrpcServiceTest, ServerThatIsGoneIsUnavailableByName) {
  TestServer server;
  LoopbackServer loopback(&server.handler);
  const std::unique_ptr<ParameterService> client = loopback.Connect();
  v1::ShardStatus response;
  ASSERT_TRUE(client->GetStatus({}, &response).ok());
  const std::string address = loopback.address();
  loopback.Shutdown();
  const absl::Status status = client->GetStatus({}, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0 at " + address));
}

TEST(ParameterGrpcServiceTest, ManyClientsAtOnce) {
  constexpr uint64_t kClients = 3;
  constexpr uint64_t kPushes = 15;
  const Placement placement = TestPlacement(1);
  TestServer server;
  const LoopbackServer loopback(&server.handler);
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(server.handler.Initialize(InitializeRequest(placement, 0), &initialized).ok());
  std::vector<std::thread> threads;
  for (uint64_t c = 1; c <= kClients; ++c) {
    threads.emplace_back([&, c] {
      const std::unique_ptr<ParameterService> client = loopback.Connect();
      for (uint64_t s = 1; s <= kPushes; ++s) {
        v1::PushResponse pushed;
        EXPECT_TRUE(client->Push(ConstantPushOf(placement, 0, c, s, 1), &pushed).ok());
        v1::PullResponse pulled;
        EXPECT_TRUE(client->Pull(PullOf(placement, 0), &pulled).ok());
        Arrays arrays;
        Receive(placement, pulled, &arrays);
        EXPECT_EQ(arrays["dense/bias"], std::vector<float>(17, arrays["dense/bias"][0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  v1::PullResponse pulled;
  ASSERT_TRUE(server.handler.Pull(PullOf(placement, 0), &pulled).ok());
  Arrays arrays;
  Receive(placement, pulled, &arrays);
  EXPECT_EQ(arrays["scale"], std::vector<float>{0.25f - kTestLearningRate * kClients * kPushes});
}

}  // namespace
}  // namespace keelson
