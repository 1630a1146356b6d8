#include "ps_server/service/shard_handlers.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

// Of a process whose own shard is the second of three.
class ShardHandlersTest : public testing::Test {
 protected:
  static absl::Status Call(ParameterControl* service, uint64_t chief) {
    v1::ChiefHeartbeatRequest request;
    *request.mutable_header() = HeaderOf(chief);
    v1::ShardStatus status;
    return service->ChiefHeartbeat(request, &status);
  }
  static absl::Status Commit(ParameterControl* service, uint64_t chief, int64_t round) {
    v1::CommitRoundRequest request;
    *request.mutable_header() = HeaderOf(chief);
    request.set_round(round);
    request.set_attempt(1);
    request.set_contributions(1);
    v1::CommitRoundResponse response;
    return service->CommitRound(request, &response);
  }
  // The only contribution to this round.
  void Stage(size_t shard, int64_t round) {
    const auto sequence = static_cast<uint64_t>(round) + 1;
    const TestRequest push = StagedPushOf(placement_, shard, 1, sequence, {round, 1}, 1, 2);
    ASSERT_TRUE(CallBulk(shards_.at(shard), BulkMethod::kPush, push).ok());
  }
  void Make(size_t shard) {
    v1::InitializeShardResponse response;
    ASSERT_TRUE(
        shards_.at(shard)->Initialize(InitializeRequest(placement_, shard), &response).ok());
  }

  const Placement placement_ = TestPlacement(3);
  ManualClock clock_;
  StopSignal end_;
  ShardHandlers shards_{{1, 2}, {.incarnation = 9, .config_hash = kTestConfigHash}, &clock_, &end_};
};

TEST_F(ShardHandlersTest, CallsThatNameNoShardAreForTheOwnOne) {
  v1::InitializeShardResponse response;
  ASSERT_TRUE(shards_.calls()->Initialize(InitializeRequest(placement_, 1), &response).ok());
  EXPECT_EQ(StatusOf(shards_.own()).shard(), 1u);
  EXPECT_EQ(shards_.at(1), shards_.own());
  EXPECT_EQ(StatusOf(shards_.at(2)).state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ(shards_.at(0), nullptr);
}

TEST_F(ShardHandlersTest, TheChiefMayHaveCalledAnyOfThem) {
  EXPECT_FALSE(shards_.called());
  Announce(shards_.at(2), {});
  EXPECT_TRUE(shards_.called());
}

// It was frozen between its calls about two shards, and has been replaced meanwhile.
TEST_F(ShardHandlersTest, AChiefThatOneOfThemRefusesIsRefusedByAll) {
  Make(2);
  Stage(2, 0);
  ASSERT_EQ(Call(shards_.at(1), kTestChief + 1), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(Commit(shards_.at(2), kTestChief, 0)));
  EXPECT_EQ(StatusOf(shards_.at(2)).committed_round(), -1);
  EXPECT_EQ(StatusOf(shards_.at(2)).chief_term(), kTestChief + 1);
  EXPECT_EQ(Commit(shards_.at(2), kTestChief + 1, 0), absl::OkStatus());
}

TEST_F(ShardHandlersTest, WhatANewChiefIsToldOfRoundsOfAnyShardStaysTrue) {
  Make(2);
  for (int64_t round = 0; round < 300; ++round) {
    Stage(2, round);
    const uint64_t chief = 1000 + static_cast<uint64_t>(round);
    // The chief of the round before commits while its successor comes, and calls another shard.
    std::thread predecessor([&] { Commit(shards_.at(2), chief, round).IgnoreError(); });
    for (int64_t pause = 0; pause < round % 30; ++pause) std::this_thread::yield();
    ASSERT_EQ(Call(shards_.at(1), chief + 1), absl::OkStatus());
    const int64_t told = StatusOf(shards_.at(2)).committed_round();
    predecessor.join();
    ASSERT_EQ(StatusOf(shards_.at(2)).committed_round(), told);
    ASSERT_EQ(Commit(shards_.at(2), chief + 1, round), absl::OkStatus());
  }
}

TEST_F(ShardHandlersTest, TheJobIsOverWhenOneOfThemHasBeenTold) {
  v1::FinishShardRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  v1::FinishShardResponse response;
  ASSERT_TRUE(shards_.at(2)->Finish(request, &response).ok());
  EXPECT_TRUE(shards_.finished());
  EXPECT_TRUE(end_.raised());
}

TEST_F(ShardHandlersTest, AllLeaveTogether) {
  shards_.Linger(DepartureLimits());  // no chief is there
  for (const size_t shard : {1, 2}) {
    EXPECT_TRUE(StatusOf(shards_.at(shard)).asked_to_stop()) << shard;
  }
}

}  // namespace
}  // namespace keelson
