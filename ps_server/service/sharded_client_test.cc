// ShardedParameterClient against real servers.
#include <algorithm>
#include <thread>

#include "core/client/grpc_parameter_client.h"
#include "core/client/sharded_parameter_client.h"
#include "gmock/gmock.h"
#include "ps_server/service/hosted_shards.h"
#include "ps_server/service/loopback_testing.h"
#include "ps_server/service/lossy_server_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

// The model's order is not the placement's.
std::vector<VariableSpec> ModelOrder() {
  std::vector<VariableSpec> variables = TestVariables();
  std::reverse(variables.begin(), variables.end());
  return variables;
}

class ShardedClientTest : public testing::TestWithParam<size_t> {
 protected:
  using Options = ShardedParameterClient::Options;

  static Options DefaultOptions() {
    Options options;
    options.self = {Role::kWorker, 0};
    options.membership = {42, kTestSecret};
    options.retry.first_pause = absl::Microseconds(1);
    options.retry.longest_pause = absl::Microseconds(1);
    return options;
  }

  std::unique_ptr<ParameterClient> NewClient(std::vector<BulkHandler*> services,
                                             const Options& options = DefaultOptions()) {
    auto client = ShardedParameterClient::Create(
        options, variables_, placement_, std::make_unique<InlineBulkTransport>(std::move(services)),
        &clock_, &stop_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::unique_ptr<ParameterClient> NewGrpcClient(const Options& options) {
    std::vector<std::string> addresses;
    for (const auto& server : servers_) {
      loopback_.push_back(std::make_unique<LoopbackServer>(&server->handler));
      addresses.push_back(loopback_.back()->address());
    }
    auto client = ConnectParameterClient(options, variables_, placement_, ServersAt(addresses),
                                         Credentials(), &clock_, &stop_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::vector<BulkHandler*> Handlers() const {
    std::vector<BulkHandler*> services;
    for (const auto& server : servers_) services.push_back(&server->handler);
    return services;
  }

  Arrays Received(const ParameterClient& client) const {
    Arrays arrays;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const absl::Span<const float> values = client.values()[v];
      arrays[variables_[v].name].assign(values.begin(), values.end());
    }
    return arrays;
  }

  // The gradients that PushOf sends.
  void WriteGradients(ParameterClient* client, uint64_t sequence) const {
    const size_t last = variables_.size() - 1;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const absl::Span<float> gradient = client->gradients()[v];
      for (size_t e = 0; e < gradient.size(); ++e) {
        gradient[e] = TestGradient(last - v, static_cast<int64_t>(e), sequence);
      }
    }
  }
  // A step with the gradients of PushOf; offers some of them early.
  absl::StatusOr<std::optional<PushResult>> Step(ParameterClient* client, uint64_t sequence) const {
    WriteGradients(client, sequence);
    client->Begin(0);
    client->Offer(3);
    client->Offer(1);
    return client->End();
  }
  // A step that has to be acknowledged at once.
  PushResult StepNow(ParameterClient* client, uint64_t sequence) const {
    const auto result = Step(client, sequence);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok() || !result->has_value()) return {};
    return **result;
  }
  void StartServersOver(uint64_t chief) {
    for (size_t s = 0; s < GetParam(); ++s) {
      v1::InitializeShardRequest request = InitializeRequest(placement_, s, "momentum {}");
      *request.mutable_header() = HeaderOf(chief);
      v1::InitializeShardResponse response;
      ASSERT_TRUE(servers_[s]->handler.Initialize(request, &response).ok());
    }
  }
  void ExpectShardSteps(int64_t steps) const {
    for (const auto& server : servers_) {
      v1::ShardStatus status;
      ASSERT_TRUE(server->handler.GetStatus({}, &status).ok());
      EXPECT_EQ(status.shard_step(), steps);
    }
  }

  const std::vector<VariableSpec> variables_ = ModelOrder();
  const Placement placement_ = TestPlacement(GetParam());
  TestServers servers_ = StartServers(placement_, "momentum {}");
  std::vector<std::unique_ptr<LoopbackServer>> loopback_;
  ManualClock clock_;
  StopSignal stop_;
};

INSTANTIATE_TEST_SUITE_P(Shards, ShardedClientTest, testing::Values(1, 2, 3));

TEST_P(ShardedClientTest, PullBringsTheValuesOfAllShards) {
  const auto client = NewClient(Handlers());
  EXPECT_EQ(client->values()[0][0], 0);
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
}

TEST_P(ShardedClientTest, StepArrivesWhereItBelongsAndBringsTheValues) {
  const auto client = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  const PushResult result = StepNow(client.get(), 7);
  EXPECT_EQ(result.staleness, 0);
  EXPECT_EQ(result.retries, 0);
  const auto expected = StartServers(placement_, "momentum {}");
  PushAll(placement_, expected, 1, 7);
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, expected));
  EXPECT_EQ(Received(*client), PullAll(placement_, expected));
  ExpectShardSteps(1);
}

TEST_P(ShardedClientTest, StalenessIsWhatOthersPushedSinceThePull) {
  const auto client = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  PushAll(placement_, servers_, /*incarnation=*/1, 1);
  PushAll(placement_, servers_, /*incarnation=*/1, 2);
  EXPECT_EQ(StepNow(client.get(), 1).staleness, 2);
  EXPECT_EQ(StepNow(client.get(), 2).staleness, 0);
  PushAll(placement_, servers_, /*incarnation=*/1, 3);
  EXPECT_EQ(StepNow(client.get(), 3).staleness, 1);
}

TEST_P(ShardedClientTest, AnswersThatAreLostChangeNothing) {
  std::vector<std::unique_ptr<LossyServer>> lossy;
  std::vector<BulkHandler*> services;
  for (const auto& server : servers_) {
    lossy.push_back(std::make_unique<LossyServer>(&server->handler));
    services.push_back(lossy.back().get());
  }
  const auto client = NewClient(services);
  const auto expected = StartServers(placement_, "momentum {}");
  ASSERT_TRUE(client->Pull().ok());
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    const PushResult result = StepNow(client.get(), sequence);
    EXPECT_EQ(result.staleness, 0);
    EXPECT_EQ(result.retries, GetParam());
    PushAll(placement_, expected, 1, sequence);
    EXPECT_EQ(Received(*client), PullAll(placement_, expected));
  }
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, expected));
  for (const auto& service : lossy) EXPECT_EQ(service->lost(), 6);
  ExpectShardSteps(5);
}

TEST_P(ShardedClientTest, ShardThatStartedOverIsPulledWhole) {
  const auto client = NewClient(Handlers());
  ASSERT_TRUE(client->Pull().ok());
  const Arrays initial = Received(*client);
  StepNow(client.get(), 1);
  EXPECT_NE(Received(*client), initial);
  StartServersOver(kTestChief + 1);
  // Versions are lower than those known, and yet the values come.
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(Received(*client), initial);
  StepNow(client.get(), 2);
  StartServersOver(kTestChief + 2);
  StepNow(client.get(), 3);
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
}

TEST_P(ShardedClientTest, FormatsRoundAsTheySay) {
  Options options = DefaultOptions();
  options.formats.assign(variables_.size(), {WireFormat::kBfloat16, WireFormat::kFloat16});
  const auto client = NewClient(Handlers(), options);
  ASSERT_TRUE(client->Pull().ok());
  StepNow(client.get(), 1);
  const auto expected = StartServers(placement_, "momentum {}");
  for (size_t s = 0; s < GetParam(); ++s) {
    const auto response =
        CallBulk(&expected[s]->handler, BulkMethod::kPush,
                 EncodedPushOf(placement_, s, 1, 1, WireFormat::kBfloat16, WireFormat::kFloat16));
    ASSERT_TRUE(response.ok()) << response.status();
  }
  Arrays values = PullAll(placement_, expected);
  EXPECT_EQ(PullAll(placement_, servers_), values);
  for (auto& [name, array] : values) {
    array = DecodeGradient(WireFormat::kFloat16, EncodeGradient(WireFormat::kFloat16, array),
                           static_cast<int64_t>(array.size()));
  }
  EXPECT_EQ(Received(*client), values);
}

TEST_P(ShardedClientTest, WorksThroughGrpc) {
  const auto client = NewGrpcClient(DefaultOptions());
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    StepNow(client.get(), sequence);
    EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
  }
  ExpectShardSteps(3);
}

TEST_P(ShardedClientTest, AtDepthTwoEveryStepIsAppliedOnce) {
  Options options = DefaultOptions();
  options.depth = 2;
  options.background = true;
  const auto client = NewGrpcClient(options);
  const auto expected = StartServers(placement_, "momentum {}");
  ASSERT_TRUE(client->Pull().ok());
  for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
    const auto result = Step(client.get(), sequence);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->has_value(), sequence > 1);
    PushAll(placement_, expected, 1, sequence);
  }
  const auto last = client->Drain();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->has_value());
  EXPECT_EQ(PullAll(placement_, servers_), PullAll(placement_, expected));
  ExpectShardSteps(6);
}

// K synchronous workers, each on a batch of its own size, are one worker on all of them, step by
// step; in one of the steps a worker is lost after its push, so everyone computes again.
TEST_P(ShardedClientTest, SynchronousWorkersAreOneWithTheWholeBatch) {
  const std::vector<float> examples = {100, 100, 50};
  std::vector<std::unique_ptr<ParameterClient>> workers;
  for (size_t w = 0; w < examples.size(); ++w) {
    Options options = DefaultOptions();
    options.membership = {100 + w, kTestSecret};
    workers.push_back(NewClient(Handlers(), options));
  }
  const auto expected = StartServers(placement_, "momentum {}");
  std::vector<BulkHandler*> expected_services;
  for (const auto& server : expected) expected_services.push_back(&server->handler);
  const auto one = NewClient(expected_services);
  for (int64_t round = 0; round < 6; ++round) {
    const uint32_t attempt = round >= 3 ? 2 : 1;
    if (round == 3) {
      WriteGradients(workers[0].get(), 999);
      workers[0]->Begin(round, Aggregation{round, 1, examples[0]});
      ASSERT_TRUE(workers[0]->End().ok());
    }
    for (const absl::Span<float> sum : one->gradients()) std::fill(sum.begin(), sum.end(), 0.0f);
    for (size_t w = 0; w < workers.size(); ++w) {
      ASSERT_TRUE(workers[w]->Pull().ok());
      WriteGradients(workers[w].get(), static_cast<uint64_t>(round) * 10 + w);
      for (size_t v = 0; v < variables_.size(); ++v) {
        const absl::Span<const float> gradient = workers[w]->gradients()[v];
        const absl::Span<float> sum = one->gradients()[v];
        for (size_t e = 0; e < sum.size(); ++e) sum[e] += gradient[e] * examples[w] / 250;
      }
      workers[w]->Begin(round, Aggregation{round, attempt, examples[w]});
      workers[w]->Offer(2);
      const auto result = workers[w]->End();
      ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
      EXPECT_FALSE((*result)->refused);
    }
    for (const auto& server : servers_) {
      ASSERT_TRUE(CommitRound(&server->handler, {round, attempt}, 3).ok());
    }
    one->Begin(round);
    ASSERT_TRUE(one->End().ok());
    const Arrays synchronous = PullAll(placement_, servers_);
    for (const auto& [name, values] : PullAll(placement_, expected)) {
      EXPECT_THAT(synchronous.at(name), testing::Pointwise(testing::FloatNear(1e-6f), values));
    }
  }
  ExpectShardSteps(6);
}

TEST_P(ShardedClientTest, ConnectingToAnotherNumberOfServersIsRefused) {
  const auto client = ConnectParameterClient(DefaultOptions(), variables_, placement_, {},
                                             Credentials(), &clock_, &stop_);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ShardedClientTest, ManyWorkersAtOnce) {
  constexpr uint64_t kWorkers = 3;
  constexpr int kSteps = 20;
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Options options = DefaultOptions();
      options.membership = {100 + w, kTestSecret};
      const auto client = NewClient(Handlers(), options);
      EXPECT_TRUE(client->Pull().ok());
      for (const absl::Span<float> gradient : client->gradients()) {
        std::fill(gradient.begin(), gradient.end(), 0.0f);
      }
      for (int step = 0; step < kSteps; ++step) {
        EXPECT_EQ(Received(*client).at("dense/bias"), std::vector<float>(17, 0.25f));
        client->Begin(step);
        EXPECT_TRUE(client->End().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectShardSteps(kWorkers * kSteps);
}

TEST_P(ShardedClientTest, OneProcessHostsAllShards) {
  std::vector<HostedShard> shards;
  for (size_t s = 0; s < GetParam(); ++s) {
    shards.push_back({static_cast<uint32_t>(s), &servers_[s]->handler, &servers_[s]->handler});
  }
  HostedShards host(std::move(shards));
  Options options = DefaultOptions();
  options.names_shards = true;
  const auto client = NewClient(std::vector<BulkHandler*>(GetParam(), &host), options);
  ASSERT_TRUE(client->Pull().ok());
  StepNow(client.get(), 1);
  ExpectShardSteps(1);
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
}

// Its new server has none of the updates, so that all of its values differ.
TEST_P(ShardedClientTest, AShardIsTakenOverByAnotherServer) {
  const auto client = NewGrpcClient(DefaultOptions());
  ASSERT_TRUE(client->Pull().ok());
  StepNow(client.get(), 1);
  const size_t last = GetParam() - 1;
  TestServers others = NewServers(1);
  v1::InitializeShardResponse response;
  ASSERT_TRUE(
      others[0]
          ->handler.Initialize(InitializeRequest(placement_, last, "momentum {}"), &response)
          .ok());
  const LoopbackServer successor(&others[0]->handler);
  std::vector<std::string> addresses;
  for (const auto& server : loopback_) addresses.push_back(server->address());
  addresses[last] = successor.address();
  loopback_[last]->Shutdown();
  std::thread mover([&] { client->SetServers(ServersAt(addresses)); });
  StepNow(client.get(), 2);
  mover.join();
  std::swap(servers_[last], others[0]);
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
  StepNow(client.get(), 3);
  EXPECT_EQ(StatusOf(&servers_[last]->handler).shard_step(), 2) << "each push once";
  EXPECT_EQ(Received(*client), PullAll(placement_, servers_));
}

}  // namespace
}  // namespace keelson
