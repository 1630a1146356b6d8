#include "ps_server/service/shard_handlers.h"

#include <vector>

#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

// Of a process whose own shard is the second of three.
class ShardHandlersTest : public testing::Test {
 protected:
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
