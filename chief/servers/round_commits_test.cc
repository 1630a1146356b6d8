#include "chief/servers/round_commits.h"

#include <atomic>

#include "chief/servers/round_gate.h"
#include "chief/servers/server_group_testing.h"
#include "core/base/thread.h"

namespace keelson {
namespace {

class RoundCommitsTest : public ServerGroupTest {};

TEST_F(RoundCommitsTest, ARoundIsCommittedEverywhere) {
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  for (const FakeParameterServer& server : servers_) {
    ASSERT_EQ(server.commits().size(), 1u);
    EXPECT_EQ(server.commits()[0].header().incarnation(), 42u);
    EXPECT_EQ(server.commits()[0].round(), 12);
    EXPECT_EQ(server.commits()[0].attempt(), 3u);
    EXPECT_EQ(server.commits()[0].contributions(), 4u);
  }
}

TEST_F(RoundCommitsTest, TheFirstCommitIsToldWhileTheOthersFollow) {
  servers_[1].FailCommits({absl::UnavailableError("restarting")});
  int told = 0;
  size_t others = 0;
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_,
                                    [&] {
                                      ++told;
                                      others = servers_[1].shard().committed_round();
                                    }),
            absl::OkStatus());
  EXPECT_EQ(told, 1);
  EXPECT_NE(others, 12u) << "it was told before the other server had it";
}

TEST_F(RoundCommitsTest, ACommitIsRepeatedUntilItIsAnswered) {
  servers_[1].FailCommits(
      {absl::UnavailableError("restarting"), absl::DeadlineExceededError("slow")});
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  EXPECT_EQ(servers_[0].commits().size(), 1u);
  EXPECT_EQ(servers_[1].commits().size(), 3u);
}

TEST_F(RoundCommitsTest, ARoundIsCommittedThoughARestartedServerLostIt) {
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  ASSERT_EQ(servers_[1].commits().size(), 2u);
  EXPECT_TRUE(servers_[1].commits()[1].lost());
  EXPECT_EQ(servers_[1].shard().committed_round(), 12);
}

TEST_F(RoundCommitsTest, ARoundThatARestoredServerLacksIsNotCommitted) {
  ASSERT_EQ(group_.InitializeServer(1, 5, {}), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_),
            absl::FailedPreconditionError("ps-1: 1 of 4 pushes"));
  EXPECT_TRUE(servers_[0].commits().empty()) << "so the round can be begun again";
  EXPECT_EQ(group_.rounds()->Commit({12, 4, 4}, stop_), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.rounds()->Commit({13, 5, 4}, stop_), absl::OkStatus()) << "it was sure by then";
  EXPECT_TRUE(servers_[1].commits().back().lost());
}

TEST_F(RoundCommitsTest, ServersThatMayLackPushesAreAskedBeforeAnyCommits) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  for (const size_t s : {0, 1}) ASSERT_EQ(group_.InitializeServer(s, 6, {}), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_TRUE(absl::IsFailedPrecondition(group_.rounds()->Commit({12, 3, 4}, stop_)));
  ASSERT_EQ(servers_[0].commits().size(), 1u);
  EXPECT_TRUE(servers_[0].commits()[0].only_ask());
  EXPECT_EQ(servers_[0].shard().committed_round(), -1);
}

TEST_F(RoundCommitsTest, ARoundThatALeavingServersSuccessorLacksIsNotCommitted) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_EQ(group_.rounds()->Commit({11, 3, 4}, stop_), absl::OkStatus());
  v1::ShardStatus status;
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(true); });
  ASSERT_EQ(group_.ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  // Its snapshot is committed.
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(false); });
  ASSERT_EQ(group_.ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  const size_t before = servers_[0].commits().size();
  servers_[1].FailCommits({absl::UnavailableError("this server leaves"),
                           absl::FailedPreconditionError("0 of 4 pushes")});
  EXPECT_TRUE(absl::IsFailedPrecondition(group_.rounds()->Commit({12, 3, 4}, stop_)));
  EXPECT_EQ(servers_[0].commits().size(), before);
}

// It was asked to stop right before a snapshot, which its heartbeats have not told yet.
TEST_F(RoundCommitsTest, ARoundThatAServerLacksWhichHasEndedWithACutIsNotCommitted) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_EQ(group_.rounds()->Commit({11, 3, 4}, stop_), absl::OkStatus());
  ASSERT_TRUE(group_.cuts()->Prepare([] {}, {}).ok());
  servers_[1].FailCommits({absl::UnavailableError("this server leaves"),
                           absl::FailedPreconditionError("0 of 4 pushes")});
  EXPECT_TRUE(absl::IsFailedPrecondition(group_.rounds()->Commit({12, 3, 4}, stop_)));
  EXPECT_EQ(servers_[0].shard().committed_round(), 11) << "so the round can be begun again";
  ASSERT_EQ(group_.rounds()->Commit({12, 4, 4}, stop_), absl::OkStatus());
  const size_t before = servers_[1].commits().size();
  ASSERT_EQ(group_.rounds()->Commit({13, 5, 4}, stop_), absl::OkStatus());
  EXPECT_EQ(servers_[1].commits().size(), before + 1) << "it need not be asked any more";
}

// Its shard moves to another host without rounds, and the commit waits for that.
TEST_F(RoundCommitsTest, WhatIsWaitedForBeforeTheFirstCommitMayHappen) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_TRUE(group_.cuts()->Prepare([] {}, {}).ok());
  std::atomic<bool> closed = true;
  servers_[1].Answer(&ParameterControl::CommitRound, [&](const auto&, auto*) {
    return closed ? absl::UnavailableError("this server leaves") : absl::OkStatus();
  });
  absl::Status committed;
  Thread committer([&] { committed = group_.rounds()->Commit({12, 3, 4}, stop_); });
  servers_[1].AwaitCount(&ParameterControl::CommitRound, 1);
  EXPECT_EQ(group_.rounds()->WithoutRounds(absl::Seconds(2), [] { return absl::OkStatus(); }),
            absl::OkStatus());
  closed = false;
  committer.Join();
  EXPECT_EQ(committed, absl::OkStatus());
}

// A chief that was replaced may have made the shard of a server that was restarted. That shard is
// made again, so what is committed there would be lost.
TEST_F(RoundCommitsTest, ARoundIsCommittedAtTheShardsThatTheChiefKnows) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  for (FakeParameterServer& server : servers_) {
    EXPECT_NE(server.shard().store_id(), 0u);
    EXPECT_EQ(server.commits().back().store_id(), server.shard().store_id());
  }
}

TEST_F(RoundCommitsTest, ARoundThatNobodyHasIsNotCommitted) {
  for (FakeParameterServer& server : servers_) {
    server.FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  }
  const absl::Status status = group_.rounds()->Commit({12, 3, 4}, stop_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "ps-0: 1 of 4 pushes");
}

TEST_F(RoundCommitsTest, AnErrorOfACommitIsTold) {
  servers_[0].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  servers_[1].FailCommits({absl::AbortedError("another chief")});
  EXPECT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_).code(), absl::StatusCode::kAborted);
}

TEST_F(RoundCommitsTest, ACommitAtOneServerHasItsPatience) {
  servers_[1].FailCommits(std::vector<absl::Status>(100, absl::UnavailableError("gone")));
  EXPECT_EQ(group_.rounds()->CommitAt(1, {12, 3, 4}, absl::ZeroDuration(), stop_).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(servers_[0].commits().empty());
}

TEST_F(RoundCommitsTest, StopEndsARepeatedCommit) {
  servers_[1].FailCommits(std::vector<absl::Status>(100, absl::UnavailableError("gone")));
  stop_.Raise();
  EXPECT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_).code(), absl::StatusCode::kCancelled);
}

TEST(RoundGateTest, ACutHasPatienceWithARound) {
  RoundGate gate;
  {
    const RoundGate::Round round(&gate);
    const auto never = [] {
      ADD_FAILURE();
      return absl::OkStatus();
    };
    EXPECT_EQ(gate.WithoutRounds(absl::ZeroDuration(), never).code(),
              absl::StatusCode::kUnavailable);
  }
  const auto fails = [] { return absl::AbortedError("another chief"); };
  EXPECT_EQ(gate.WithoutRounds(absl::ZeroDuration(), fails), absl::AbortedError("another chief"));
  const RoundGate::Round next(&gate);
}

TEST_F(RoundCommitsTest, ARestoredServerCountsTheRoundsOfTheJobAsDone) {
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  ASSERT_EQ(group_.InitializeServer(1, 5, {}), absl::OkStatus());
  EXPECT_EQ(servers_[1].initializations().back().committed_round(), 12);
}

}  // namespace
}  // namespace keelson
