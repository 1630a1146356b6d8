#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <string>

#include "core/client/sharded_parameter_client_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

TEST_F(ClientTest, RequestsSayWhoAsksAndWhatIsKnown) {
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_EQ(shard_.calls.size(), 4u);
  for (const FakeShard::Call& call : shard_.calls) {
    EXPECT_EQ(call.method, BulkMethod::kPull);
    EXPECT_EQ(call.request.role, v1::ROLE_WORKER);
    EXPECT_EQ(call.request.task_index, 3u);
    EXPECT_EQ(call.request.incarnation, 42u);
    EXPECT_EQ(call.request.membership_secret, 43u);
    EXPECT_EQ(call.request.member_epoch, 17u);
    EXPECT_EQ(call.request.placement_fingerprint, placement_.Fingerprint());
  }
  EXPECT_THAT(shard_.calls[0].request.known_versions, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(shard_.calls[2].request.known_versions, ElementsAre(1, 1, 1, 1, 1));
}

TEST_F(ClientTest, UnchangedBlocksAreNotSentAgain) {
  ASSERT_TRUE(client_->Pull().ok());
  size_t payload = 0;
  shard_.after = [&](BulkResponse*, std::string* bytes) {
    payload += bytes->size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(payload, 0u);
  EXPECT_EQ(Uniform(client_->values()[0]), 1);
  shard_.SetValues(2);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Uniform(client_->values()[0]), 2);
}

TEST_F(ClientTest, PartsOfAPushShareItsSequence) {
  shard_.shard_step = 6;
  ASSERT_TRUE(client_->Pull().ok());
  shard_.calls.clear();
  ASSERT_TRUE(Push(17).ok());
  ASSERT_TRUE(Push(18).ok());
  ASSERT_EQ(shard_.calls.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const BulkRequest& push = shard_.calls[i].request;
    EXPECT_EQ(shard_.calls[i].method, BulkMethod::kPushPull);
    EXPECT_EQ(push.incarnation, 42u);
    EXPECT_EQ(push.membership_secret, 43u);
    EXPECT_EQ(push.placement_fingerprint, placement_.Fingerprint());
    EXPECT_EQ(push.sequence, i < 2 ? 1u : 2u);
    EXPECT_EQ(push.step, i < 2 ? 17 : 18);
    EXPECT_EQ(push.pulled_shard_step, i < 2 ? 6 : 7);
    EXPECT_EQ(push.last_part, i % 2 == 1);
  }
}

TEST_F(ClientTest, MessageIsSentWhenItsGradientsAreOffered) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.calls.clear();
  client_->Begin(0);
  client_->Offer(1);
  EXPECT_EQ(shard_.calls.size(), 0u) << "the first message has a part of w";
  client_->Offer(0);
  EXPECT_EQ(shard_.calls.size(), 2u);
  client_->Offer(0);
  ASSERT_TRUE(client_->End().ok());
  EXPECT_EQ(shard_.calls.size(), 2u);
}

TEST_F(ClientTest, OmittedVariablesAreNotSentAndTheirValuesComeBack) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.SetValues(5);
  shard_.calls.clear();
  client_->Begin(0);
  Fill(client_->gradients()[1], 2);
  client_->Offer(1);
  client_->Omit(1);  // Too late.
  client_->Omit(0);
  const auto pushed = client_->End();
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_LT((*pushed)->bytes_pushed, 1000);
  EXPECT_EQ(Uniform(client_->values()[0]), 5);
  EXPECT_EQ(Uniform(client_->values()[1]), 3);
  Fill(client_->gradients()[0], 1);
  ASSERT_TRUE(Push(1).ok());
  EXPECT_EQ(Uniform(client_->values()[0]), 4) << "another step has it again";
}

TEST_F(ClientTest, StalenessCountsPushesOfOthers) {
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ((*Push(0))->staleness, 0);
  EXPECT_EQ((*Push(1))->staleness, 0) << "its own pushes do not count";
  shard_.shard_step += 3;
  EXPECT_EQ((*Push(2))->staleness, 3);
  EXPECT_EQ((*Push(3))->staleness, 0);
}

TEST_F(ClientTest, PushOfAnotherBetweenTheAnswersIsCounted) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.after = [this](auto*, auto*) {
    if (shard_.calls.size() == 3) ++shard_.shard_step;
    return absl::OkStatus();
  };
  ASSERT_TRUE(Push(0).ok());
  EXPECT_EQ((*Push(1))->staleness, 1) << "the first answer's values are without it";
}

TEST_F(ClientTest, ShardThatStartedOverIsPulledWholeWithLowerVersions) {
  ASSERT_TRUE(client_->Pull().ok());
  for (int i = 0; i < 5; ++i) shard_.SetValues(2);
  ASSERT_TRUE(client_->Pull().ok());
  shard_.StartOver(5);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Uniform(client_->values()[0]), 5);
}

TEST_F(ClientTest, ShardThatStartsOverWithinAPull) {
  for (const bool first_pull : {true, false}) {
    int calls = 0;
    shard_.after = [&](auto*, auto*) {
      if (++calls == 1) shard_.StartOver(first_pull ? 7 : 8);
      return absl::OkStatus();
    };
    ASSERT_TRUE(client_->Pull().ok());
    EXPECT_EQ(Uniform(client_->values()[0]), first_pull ? 7 : 8);
    EXPECT_EQ(Uniform(client_->values()[1]), first_pull ? 7 : 8);
  }
}

TEST_F(ClientTest, WorksOnTheCallersMemory) {
  std::vector<float> w(2'000'000), b(10), dw(2'000'000, 3), db(10, 4);
  ShardedParameterClient::Options options = FastOptions();
  options.memory = ParameterMemory{{absl::MakeSpan(w), absl::MakeSpan(b)},
                                   {absl::MakeSpan(dw), absl::MakeSpan(db)}};
  const auto client = Create(options);
  EXPECT_EQ(client->values()[0].data(), w.data());
  EXPECT_EQ(client->gradients()[1].data(), db.data());
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(w[5], 1);
  client->Begin(0);
  ASSERT_TRUE(client->End().ok());
  EXPECT_EQ(Uniform(w), -2);
  EXPECT_EQ(Uniform(b), -3);
}

TEST(ManyShardsTest, ResultsAreOverAllShards) {
  const std::vector<VariableSpec> variables = {{"a", Shape({2000}), {}}, {"b", Shape({3000}), {}}};
  const Placement placement = Placement::Compute(variables, 3);  // one shard has nothing
  std::vector<FakeShard> shards(3, FakeShard(&placement));
  ManualClock clock;
  StopSignal stop;
  auto client =
      ShardedParameterClient::Create(FastOptions(), variables, placement,
                                     Inline({&shards[0], &shards[1], &shards[2]}), &clock, &stop);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Pull().ok());
  for (FakeShard& shard : shards) {
    shard.shard_step += 3;
    shard.before = [&shard] {
      return shard.calls.size() == 2 ? absl::UnavailableError("away") : absl::OkStatus();
    };
  }
  const size_t with_partitions =
      std::count_if(shards.begin(), shards.end(), [](auto& shard) { return !shard.calls.empty(); });
  shards[placement.partition(0).shard].shard_step += 2;
  (*client)->Begin(0);
  for (const auto& gradient : (*client)->gradients()) Fill(gradient, 1);
  const auto result = (*client)->End();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)->staleness, 5);
  EXPECT_EQ((*result)->retries, static_cast<int64_t>(with_partitions));
  EXPECT_EQ(Uniform((*client)->values()[0]), 0);
  EXPECT_EQ(Uniform((*client)->values()[1]), 0);
}

}  // namespace
}  // namespace keelson
