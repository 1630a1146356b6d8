// ShardedParameterClient against real servers.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core/client/grpc_parameter_client.h"
#include "core/client/sharded_parameter_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/loopback_testing.h"
#include "ps_server/shard_testing.h"

namespace keelson {
namespace {

// Executes every call; every second Pull and Push is answered as if it had been lost.
class LossyService : public ParameterService {
 public:
  explicit LossyService(ParameterService* service) : service_(service) {}

  int lost() const { return lost_; }

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    return service_->Initialize(request, response);
  }
  absl::Status Pull(const v1::PullRequest& request, v1::PullResponse* response) override {
    return MaybeLose(service_->Pull(request, response));
  }
  absl::Status Push(const v1::PushRequest& request, v1::PushResponse* response) override {
    return MaybeLose(service_->Push(request, response));
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    return service_->WriteSnapshot(request, response);
  }
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    return service_->GetStatus(request, response);
  }
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override {
    return service_->FindChief(request, response);
  }
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    return service_->Finish(request, response);
  }

 private:
  absl::Status MaybeLose(absl::Status status) {
    if (++calls_ % 2 == 0) return status;
    ++lost_;
    return absl::UnavailableError("the answer was lost");
  }

  ParameterService* const service_;
  std::atomic<int> calls_{0};
  std::atomic<int> lost_{0};
};

// The model's order is not the placement's.
std::vector<VariableSpec> ModelOrder() {
  std::vector<VariableSpec> variables = TestVariables();
  std::reverse(variables.begin(), variables.end());
  return variables;
}

Arrays ByName(absl::Span<const VariableSpec> variables, absl::Span<const Tensor> tensors) {
  Arrays arrays;
  for (size_t v = 0; v < variables.size(); ++v) {
    EXPECT_EQ(tensors[v].shape(), variables[v].shape);
    arrays[variables[v].name].assign(tensors[v].span().begin(), tensors[v].span().end());
  }
  return arrays;
}

// The gradients that PushOf sends.
std::vector<Tensor> Gradients(const Placement& placement, absl::Span<const VariableSpec> variables,
                              uint64_t sequence) {
  std::vector<Tensor> gradients;
  for (const VariableSpec& variable : variables) {
    int position = 0;
    while (placement.variables()[static_cast<size_t>(position)].name != variable.name) ++position;
    Tensor& gradient = gradients.emplace_back(variable.shape);
    for (int64_t e = 0; e < gradient.size(); ++e) {
      gradient.data()[e] = TestGradient(position, e, sequence);
    }
  }
  return gradients;
}

class ShardedClientTest : public testing::TestWithParam<int> {
 protected:
  static ShardedParameterClient::Options Options() {
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, 0};
    options.incarnation = 42;
    options.retry.first_pause = absl::Microseconds(1);
    options.retry.longest_pause = absl::Microseconds(1);
    options.threads = GetParam() - 1;
    return options;
  }

  std::unique_ptr<ShardedParameterClient> NewClient(std::vector<ParameterService*> services) {
    auto client = ShardedParameterClient::Create(Options(), variables_, placement_,
                                                 std::move(services), &clock_, &stop_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::vector<ParameterService*> Handlers() const {
    std::vector<ParameterService*> services;
    for (const auto& server : servers_) services.push_back(&server->handler);
    return services;
  }

  const std::vector<VariableSpec> variables_ = ModelOrder();
  const Placement placement_ = TestPlacement(GetParam());
  const TestServers servers_ = StartServers(placement_, "momentum {}", "");
  ManualClock clock_;
  StopSignal stop_;
};

INSTANTIATE_TEST_SUITE_P(Shards, ShardedClientTest, testing::Values(1, 2, 3));

TEST_P(ShardedClientTest, PullBringsTheValuesOfAllShards) {
  const auto client = NewClient(Handlers());
  EXPECT_EQ(client->values()[0].data()[0], 0);
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(ByName(variables_, client->values()), PullAll(placement_, servers_));
}

TEST_P(ShardedClientTest, PushArrivesWhereItBelongs) {
  const auto client = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  const auto result = client->Push(0, Gradients(placement_, variables_, 7));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->staleness, 0);
  EXPECT_EQ(result->retries, 0);
  ASSERT_TRUE(client->Pull().ok());
  const auto expected = StartServers(placement_, "momentum {}", "");
  PushAll(placement_, expected, 1, 7);
  EXPECT_EQ(ByName(variables_, client->values()), PullAll(placement_, expected));
}

TEST_P(ShardedClientTest, StalenessIsWhatOthersPushedSinceThePull) {
  const auto client = NewClient(Handlers());
  const auto other = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  PushAll(placement_, servers_, /*incarnation=*/1, 1);
  PushAll(placement_, servers_, /*incarnation=*/1, 2);
  auto result = client->Push(0, Gradients(placement_, variables_, 1));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->staleness, 2);
  ASSERT_TRUE(client->Pull().ok());
  result = client->Push(1, Gradients(placement_, variables_, 2));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->staleness, 0);
}

TEST_P(ShardedClientTest, AnswersThatAreLostChangeNothing) {
  std::vector<std::unique_ptr<LossyService>> lossy;
  std::vector<ParameterService*> services;
  for (const auto& server : servers_) {
    lossy.push_back(std::make_unique<LossyService>(&server->handler));
    services.push_back(lossy.back().get());
  }
  const auto client = NewClient(services);
  const auto expected = StartServers(placement_, "momentum {}", "");
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    ASSERT_TRUE(client->Pull().ok());
    EXPECT_EQ(ByName(variables_, client->values()), PullAll(placement_, expected));
    const auto result = client->Push(0, Gradients(placement_, variables_, sequence));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->staleness, 0);
    EXPECT_EQ(result->retries, GetParam());
    PushAll(placement_, expected, 1, sequence);
  }
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, expected));
  for (int s = 0; s < GetParam(); ++s) {
    EXPECT_EQ(lossy[static_cast<size_t>(s)]->lost(), 10);
    v1::ShardStatus status;
    ASSERT_TRUE(servers_[static_cast<size_t>(s)]->handler.GetStatus({}, &status).ok());
    EXPECT_EQ(status.shard_step(), 5);
  }
}

TEST_P(ShardedClientTest, ShardThatStartedOverIsPulledWhole) {
  const auto client = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  const Arrays initial = ByName(variables_, client->values());
  ASSERT_TRUE(client->Push(0, Gradients(placement_, variables_, 1)).ok());
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_NE(ByName(variables_, client->values()), initial);
  for (int s = 0; s < GetParam(); ++s) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, s, "momentum {}");
    request.mutable_header()->set_incarnation(kTestChief + 1);
    v1::InitializeShardResponse response;
    ASSERT_TRUE(servers_[static_cast<size_t>(s)]->handler.Initialize(request, &response).ok());
  }
  // Versions are lower than those known, and yet the values come.
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(ByName(variables_, client->values()), initial);
}

TEST_P(ShardedClientTest, WorksThroughGrpc) {
  std::vector<std::unique_ptr<LoopbackServer>> loopback;
  std::vector<std::string> addresses;
  for (const auto& server : servers_) {
    loopback.push_back(std::make_unique<LoopbackServer>(&server->handler));
    addresses.push_back(loopback.back()->address());
  }
  const auto client = ConnectParameterClient(Options(), variables_, placement_, addresses,
                                             grpc::InsecureChannelCredentials(), &clock_, &stop_);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Pull().ok());
  EXPECT_EQ(ByName(variables_, (*client)->values()), PullAll(placement_, servers_));
  ASSERT_TRUE((*client)->Push(0, Gradients(placement_, variables_, 1)).ok());
  ASSERT_TRUE((*client)->Pull().ok());
  EXPECT_EQ(ByName(variables_, (*client)->values()), PullAll(placement_, servers_));
}

TEST_P(ShardedClientTest, ConnectingToAnotherNumberOfServersIsRefused) {
  const auto client = ConnectParameterClient(Options(), variables_, placement_, {},
                                             grpc::InsecureChannelCredentials(), &clock_, &stop_);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ShardedClientTest, ManyWorkersAtOnce) {
  constexpr uint64_t kWorkers = 3;
  constexpr int kSteps = 20;
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      ShardedParameterClient::Options options = Options();
      options.incarnation = 100 + w;
      auto client = ShardedParameterClient::Create(options, variables_, placement_, Handlers(),
                                                   &clock_, &stop_);
      ASSERT_TRUE(client.ok());
      std::vector<Tensor> gradients;
      for (const VariableSpec& variable : variables_) gradients.emplace_back(variable.shape);
      for (int step = 0; step < kSteps; ++step) {
        EXPECT_TRUE((*client)->Pull().ok());
        const Arrays values = ByName(variables_, (*client)->values());
        EXPECT_EQ(values.at("dense/bias"), std::vector<float>(17, 0.25f));
        EXPECT_TRUE((*client)->Push(step, gradients).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& server : servers_) {
    v1::ShardStatus status;
    ASSERT_TRUE(server->handler.GetStatus({}, &status).ok());
    EXPECT_EQ(status.shard_step(), static_cast<int64_t>(kWorkers * kSteps));
  }
}

}  // namespace
}  // namespace keelson
