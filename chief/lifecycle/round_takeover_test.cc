#include "chief/lifecycle/round_takeover.h"

#include "chief/lifecycle/running_job_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The predecessor has committed round 1 with three pushes at ps-0, and not at ps-1.
class RoundTakeoverTest : public RunningJobTest {
 protected:
  RoundTakeoverTest() : shards_(2) {
    adoption_.keeps = {true, true};
    shards_[0].set_committed_round(1);
    shards_[0].set_committed_contributions(3);
    shards_[1].set_committed_round(0);
    shards_[1].set_open_round(1);
    shards_[1].set_open_attempt(7);
  }
  void Run() {
    Coordinator::Options options;
    options.config_hash = kHash;
    Coordinator next(options, &clock_);
    TakeRoundsOver(adoption_, shards_, &next, &servers_, stop_);
  }
  // The round that a server counts as done which is restored from now on; -1: none.
  int64_t RoundOfRestored() {
    EXPECT_EQ(servers_.InitializeServer(0, std::nullopt, {}), absl::OkStatus());
    return fakes_[0].shard().committed_round();
  }

  Adoption adoption_;
  std::vector<v1::ShardStatus> shards_;
};

TEST_F(RoundTakeoverTest, ARoundIsCommittedWithThePushesThatItHadElsewhere) {
  Run();
  EXPECT_THAT(fakes_[0].commits(), IsEmpty());
  ASSERT_THAT(fakes_[1].commits(), SizeIs(1));
  const v1::CommitRoundRequest commit = fakes_[1].commits()[0];
  EXPECT_EQ(commit.round(), 1);
  EXPECT_EQ(commit.attempt(), 7u);
  EXPECT_EQ(commit.contributions(), 3u);
  EXPECT_FALSE(commit.lost());
  EXPECT_EQ(RoundOfRestored(), 1);
}

TEST_F(RoundTakeoverTest, AServerWithoutThePushesHasLostTheRound) {
  shards_[1].set_open_round(0);
  Run();
  ASSERT_THAT(fakes_[1].commits(), SizeIs(1));
  EXPECT_EQ(fakes_[1].commits()[0].round(), 1);
  EXPECT_TRUE(fakes_[1].commits()[0].lost());
}

TEST_F(RoundTakeoverTest, AServerThatLacksSomeOfThePushesHasLostTheRound) {
  fakes_[1].FailCommits({absl::FailedPreconditionError("2 of 3 pushes")});
  Run();
  ASSERT_THAT(fakes_[1].commits(), SizeIs(2));
  EXPECT_FALSE(fakes_[1].commits()[0].lost());
  EXPECT_TRUE(fakes_[1].commits()[1].lost());
}

TEST_F(RoundTakeoverTest, AShardThatIsNotKeptHasNoSay) {
  adoption_.keeps[0] = false;
  Run();
  EXPECT_THAT(fakes_[1].commits(), IsEmpty());
  EXPECT_EQ(RoundOfRestored(), 0) << "that of ps-1";
}

TEST_F(RoundTakeoverTest, WithoutRoundsNothingIsCommitted) {
  for (v1::ShardStatus& shard : shards_) shard.set_committed_round(-1);
  Run();
  EXPECT_THAT(fakes_[1].commits(), IsEmpty());
  EXPECT_EQ(RoundOfRestored(), -1);
}

}  // namespace
}  // namespace keelson
