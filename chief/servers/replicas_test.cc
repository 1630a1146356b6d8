#include "chief/servers/replicas.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/servers/round_commits.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "gmock/gmock.h"
#include "testing/services/faulty_parameter_control.h"

namespace keelson {
namespace {

using Control = ParameterControl;

constexpr RoundCommits::Round kRound = {12, 3, 4};

absl::Status Away() { return absl::UnavailableError("gone"); }

// Two shards: 0 at home at host 0 and its replica at host 1, and the other way round. Each has a
// connection of its own for each of its places, and a store there.
class ReplicasTest : public testing::Test {
 protected:
  ReplicasTest() {
    for (size_t s = 0; s < 2; ++s) {
      Hold(&home(s), HomeStore(s));
      Hold(&second(s), SecondStore(s));
      v1::ShardStatus ready;
      ready.set_state(v1::ShardStatus::READY);
      ready.set_store_id(HomeStore(s));
      calls_.contacts().NoteAnswer(s, {}, ready, /*has_job=*/true, absl::UnixEpoch());
      calls_.contacts().NoteKept(s, HomeStore(s));
    }
  }

  static Task HostOf(size_t shard) { return {Role::kWorker, static_cast<int>(shard)}; }
  static uint64_t HomeStore(size_t shard) { return 10 + shard; }
  static uint64_t SecondStore(size_t shard) { return 20 + shard; }
  // A place whose shard, or replica, is in this store.
  static void Hold(FaultyParameterControl* place, uint64_t store_id) {
    const auto fill = [store_id](v1::ShardStatus* status) {
      status->set_state(v1::ShardStatus::READY);
      status->set_store_id(store_id);
      return absl::OkStatus();
    };
    place->Answer(&Control::GetStatus, [fill](const auto&, auto* status) { return fill(status); });
    place->Answer(&Control::ReplicateShard,
                  [fill](const auto&, auto* response) { return fill(response->mutable_status()); });
  }
  FaultyParameterControl& home(size_t s) { return places_[2 * s]; }
  FaultyParameterControl& second(size_t s) { return places_[2 * s + 1]; }
  std::vector<ServerCalls::Server> Servers() {
    std::vector<ServerCalls::Server> servers;
    for (size_t s = 0; s < 2; ++s) {
      servers.push_back({absl::StrCat("home-", s), absl::StrCat("home:", s), &home(s), HostOf(s)});
      servers.back().others.push_back(
          {absl::StrCat("second-", s), absl::StrCat("second:", s), &second(s), HostOf(1 - s)});
    }
    return servers;
  }
  void MakeAll() {
    for (size_t s = 0; s < 2; ++s) ASSERT_EQ(replicas_.Make(s, 1, {}), absl::OkStatus());
  }
  absl::Status Commit() { return rounds_.Commit(kRound, stop_); }

  FaultyParameterControl places_[4];
  StopSignal stop_;
  ServerCalls calls_{v1::RequestHeader(), Servers(), Clock::Real()->Now()};
  Replicas replicas_{&calls_};
  RoundCommits rounds_{&calls_, &replicas_, Clock::Real()};
};

TEST_F(ReplicasTest, AReplicaIsMadeOfWhereTheShardIsServed) {
  EXPECT_FALSE(replicas_.Has(0));
  MakeAll();
  EXPECT_TRUE(replicas_.Has(0));
  const auto requests = second(1).Requests(&Control::ReplicateShard);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].from(), "home:1");
}

TEST_F(ReplicasTest, AHostIsWhereItWasNotedLast) {
  calls_.contacts().NoteAddress(HostOf(1), "moved:7");
  MakeAll();
  EXPECT_EQ(second(1).Requests(&Control::ReplicateShard)[0].from(), "moved:7");
  // It has the replica of the other shard.
  replicas_.NoteLost("moved:7");
  EXPECT_FALSE(replicas_.Has(0));
  EXPECT_TRUE(replicas_.Has(1));
}

TEST_F(ReplicasTest, ReplicasHaveTheRoundBeforeAnyShardCommitsIt) {
  MakeAll();
  second(1).Answer(&Control::ReplicateRound, [&](const v1::ReplicateRoundRequest& request, auto*) {
    EXPECT_EQ(request.from(), "home:1");
    EXPECT_EQ(request.round(), 12);
    EXPECT_EQ(request.attempt(), 3u);
    EXPECT_EQ(request.contributions(), 4u);
    EXPECT_EQ(home(0).Count(&Control::CommitRound), 0);
    return absl::OkStatus();
  });
  ASSERT_EQ(Commit(), absl::OkStatus());
  for (auto& place : places_) EXPECT_EQ(place.Count(&Control::CommitRound), 1);
}

TEST_F(ReplicasTest, WithoutReplicasThereIsNothingToFetch) {
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_EQ(second(0).Count(&Control::ReplicateRound), 0);
  EXPECT_EQ(second(0).Count(&Control::CommitRound), 0);
}

TEST_F(ReplicasTest, AReplicaThatDoesNotAnswerIsGivenUp) {
  MakeAll();
  second(0).Sever();
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_FALSE(replicas_.Has(0));
  EXPECT_TRUE(replicas_.Has(1));
  second(1).FailNext(&Control::CommitRound, {Away()});
  ASSERT_EQ(rounds_.Commit({13, 3, 4}, stop_), absl::OkStatus());
  EXPECT_FALSE(replicas_.Has(1));
}

// Nobody knows then whether it has committed the round, but it has the sums; only its shard's host,
// if it lives, has them, too.
TEST_F(ReplicasTest, AReplicaWhoseShardIsLostWhileItDoesNotAnswerIsNotGivenUp) {
  MakeAll();
  home(0).Answer(&Control::CommitRound, [&](const auto&, auto*) {
    if (home(0).Count(&Control::CommitRound) == 1) {
      second(0).FailNext(&Control::CommitRound, {Away()});
      return absl::OkStatus();
    }
    // It has ended. The chief notices, and the replica answers again.
    EXPECT_TRUE(replicas_.Has(0));
    v1::ShardStatus status;
    EXPECT_EQ(replicas_.Move(0, /*both_equal=*/false, &status), absl::OkStatus());
    return Away();
  });
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_EQ(calls_.serving(0), 1u);
  EXPECT_GT(second(0).Count(&Control::CommitRound), 1);
}

// Its host answers late, and rounds have been committed without it since.
TEST_F(ReplicasTest, AReplicaThatIsGivenUpWhileItIsAskedServesNothing) {
  MakeAll();
  second(0).Answer(&Control::GetStatus, [&](const auto&, auto* status) {
    replicas_.NoteLost("second:0");
    EXPECT_EQ(Commit(), absl::OkStatus());
    status->set_state(v1::ShardStatus::READY);
    status->set_store_id(SecondStore(0));
    return absl::OkStatus();
  });
  v1::ShardStatus status;
  EXPECT_TRUE(absl::IsUnavailable(replicas_.Move(0, /*both_equal=*/false, &status)));
  EXPECT_EQ(calls_.serving(0), 0u);
}

TEST_F(ReplicasTest, ARoundThatAShardLacksIsCommittedNowhere) {
  MakeAll();
  const absl::Status lacks = absl::FailedPreconditionError("3 of 4 pushes");
  second(1).FailNext(&Control::ReplicateRound, {lacks});
  home(1).FailNext(&Control::CommitRound, {lacks});
  EXPECT_TRUE(absl::IsFailedPrecondition(Commit()));
  EXPECT_TRUE(replicas_.Has(1));
  EXPECT_EQ(home(0).Count(&Control::CommitRound), 0);
}

TEST_F(ReplicasTest, AHostThatIsLostBeforeTheCommitIsReplaced) {
  MakeAll();
  // The host answers no more; while it is waited for, its replica takes its place.
  second(1).FailNext(&Control::ReplicateRound, {Away()});
  home(1).Answer(&Control::CommitRound, [&](const auto&, auto*) {
    v1::ShardStatus status;
    EXPECT_EQ(replicas_.Move(1, /*both_equal=*/false, &status), absl::OkStatus());
    return Away();
  });
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_FALSE(calls_.at_home(1));
  EXPECT_FALSE(replicas_.Has(1));
  EXPECT_EQ(second(1).Count(&Control::CommitRound), 1);
}

TEST_F(ReplicasTest, AHostThatIsLostWhileItCommitsIsReplacedByOneThatCommitsToo) {
  MakeAll();
  home(1).Answer(&Control::CommitRound, [&](const auto&, auto*) {
    v1::ShardStatus status;
    EXPECT_EQ(replicas_.Move(1, /*both_equal=*/false, &status), absl::OkStatus());
    return absl::OkStatus();
  });
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_EQ(second(1).Count(&Control::CommitRound), 1)
      << "the replica was not asked before it took the shard's place";
}

TEST_F(ReplicasTest, AReplicaCommitsBeforeTheCallOfTheLostHostHasEnded) {
  MakeAll();
  home(1).Answer(&Control::CommitRound, [&](const auto&, auto*) {
    v1::ShardStatus status;
    EXPECT_EQ(replicas_.Move(1, /*both_equal=*/false, &status), absl::OkStatus());
    rounds_.CommitWhereMoved(1);
    EXPECT_EQ(second(1).Count(&Control::CommitRound), 1);
    EXPECT_EQ(rounds_.committed(), 12);
    return Away();
  });
  ASSERT_EQ(Commit(), absl::OkStatus());
  const int commits = second(1).Count(&Control::CommitRound);
  rounds_.CommitWhereMoved(1);
  EXPECT_EQ(second(1).Count(&Control::CommitRound), commits) << "none is under way";
}

TEST_F(ReplicasTest, OnlyAReplicaTakesItsShardsPlace) {
  v1::ShardStatus status;
  EXPECT_TRUE(absl::IsUnavailable(replicas_.Move(0, false, &status)));
  MakeAll();
  second(0).Answer(&Control::GetStatus, [](const auto&, v1::ShardStatus* empty) {
    empty->set_state(v1::ShardStatus::EMPTY);
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(replicas_.Move(0, false, &status)));
  EXPECT_FALSE(replicas_.Has(0));
  EXPECT_TRUE(calls_.at_home(0));
  ASSERT_EQ(replicas_.Move(1, /*both_equal=*/true, &status), absl::OkStatus());
  EXPECT_EQ(status.store_id(), SecondStore(1));
  EXPECT_EQ(calls_.name(1), "second-1");
  EXPECT_EQ(replicas_.at(1), 0u);
  EXPECT_TRUE(replicas_.Has(1)) << "the former host is the replica now";
}

TEST_F(ReplicasTest, AProcessThatIsLostIsNotWaitedForAsAReplica) {
  MakeAll();
  replicas_.NoteLost("second:1");
  EXPECT_TRUE(replicas_.Has(0));
  EXPECT_FALSE(replicas_.Has(1));
  ASSERT_EQ(Commit(), absl::OkStatus());
  EXPECT_EQ(second(1).Count(&Control::ReplicateRound), 0);
}

TEST_F(ReplicasTest, OfAShardThatIsLostTheReplicaMayBeTheOnlyCopy) {
  MakeAll();
  calls_.contacts().NoteSilence(1, absl::UnixEpoch());
  replicas_.NoteLost("second:1");
  EXPECT_TRUE(replicas_.Has(1)) << "its host is silent";
  calls_.contacts().NoteAnswer(1, {}, v1::ShardStatus(), /*has_job=*/false, absl::UnixEpoch());
  replicas_.NoteLost("second:1");
  EXPECT_TRUE(replicas_.Has(1)) << "its host has been restarted";
}

// Other processes may be at the addresses by now, with other states of the same shards.
TEST_F(ReplicasTest, WhatIsCopiedFetchedAndCommittedIsOfTheStoresThatAreKnown) {
  MakeAll();
  EXPECT_EQ(second(1).Requests(&Control::ReplicateShard).back().store_id(), HomeStore(1));
  ASSERT_EQ(Commit(), absl::OkStatus());
  const v1::ReplicateRoundRequest fetched = second(1).Requests(&Control::ReplicateRound).back();
  EXPECT_EQ(fetched.store_id(), HomeStore(1));
  EXPECT_EQ(fetched.replica_store_id(), SecondStore(1));
  EXPECT_EQ(home(1).Requests(&Control::CommitRound).back().store_id(), HomeStore(1));
  EXPECT_EQ(second(1).Requests(&Control::CommitRound).back().store_id(), SecondStore(1));
  // The former host is the replica.
  v1::ShardStatus status;
  ASSERT_EQ(replicas_.Move(1, /*both_equal=*/true, &status), absl::OkStatus());
  calls_.contacts().NoteMoved(1, {}, status, absl::UnixEpoch());
  ASSERT_EQ(rounds_.Commit({13, 3, 4}, stop_), absl::OkStatus());
  const v1::ReplicateRoundRequest next = home(1).Requests(&Control::ReplicateRound).back();
  EXPECT_EQ(next.store_id(), SecondStore(1));
  EXPECT_EQ(next.replica_store_id(), HomeStore(1));
  EXPECT_EQ(home(1).Requests(&Control::CommitRound).back().store_id(), HomeStore(1));
}

TEST_F(ReplicasTest, AnotherStoreAtTheReplicasPlaceIsNoReplica) {
  MakeAll();
  Hold(&second(0), 99);
  Hold(&second(1), 99);
  v1::ShardStatus status;
  EXPECT_TRUE(absl::IsUnavailable(replicas_.Move(0, /*both_equal=*/false, &status)));
  EXPECT_TRUE(calls_.at_home(0));
  EXPECT_FALSE(replicas_.Has(0));
  replicas_.NoteRestarted("second:1");
  EXPECT_FALSE(replicas_.Has(1));
}

TEST_F(ReplicasTest, AShardWhoseHostMayBeAnotherProcessKeepsItsReplica) {
  MakeAll();
  calls_.contacts().NoteAddress(HostOf(1), "moved:7");
  replicas_.NoteLost("second:1");
  EXPECT_TRUE(replicas_.Has(1));
  Hold(&home(0), 99);
  replicas_.NoteLeaving("moved:7");
  EXPECT_TRUE(replicas_.Has(0)) << "another shard than the job's answers";
  second(0).FailNext(&Control::ReplicateRound, {Away()});
  home(0).Answer(&Control::CommitRound, [&](const auto& request, auto*) {
    EXPECT_EQ(request.store_id(), HomeStore(0));
    EXPECT_TRUE(replicas_.Has(0));
    stop_.Raise();
    return Away();
  });
  EXPECT_TRUE(absl::IsCancelled(Commit()));
  EXPECT_TRUE(replicas_.Has(0));
}

TEST_F(ReplicasTest, ANewReplicaTakesThePlaceOfAnotherOne) {
  ASSERT_EQ(replicas_.Make(0, 1, {}), absl::OkStatus());
  ASSERT_EQ(replicas_.Make(0, 1, {}), absl::OkStatus());
  EXPECT_EQ(second(0).Count(&Control::Finish), 0) << "it is the same one";
  v1::ShardStatus status;
  ASSERT_EQ(replicas_.Move(0, /*both_equal=*/false, &status), absl::OkStatus());
  ASSERT_EQ(replicas_.Make(0, 0, {}), absl::OkStatus());
  EXPECT_EQ(home(0).Requests(&Control::ReplicateShard).back().from(), "second:0");
  replicas_.DropAt(0, 1);
  const auto dropped = second(0).Requests(&Control::Finish);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_TRUE(dropped[0].moved());
}

class FindShardTest : public ReplicasTest {
 protected:
  static constexpr uint64_t kPlacement = 77;

  // A place that holds the shard so far.
  static void Hold(FaultyParameterControl* place, uint64_t placement, int64_t committed_round,
                   int64_t step = 0) {
    place->Answer(&Control::GetStatus, [=](const auto&, v1::ShardStatus* status) {
      status->set_state(v1::ShardStatus::READY);
      status->set_placement_fingerprint(placement);
      status->set_committed_round(committed_round);
      status->set_shard_step(step);
      return absl::OkStatus();
    });
  }
  // The number of the place that serves shard 0 then; -1: none was found.
  int Found() {
    v1::ShardStatus status;
    return replicas_.FindShard(0, kPlacement, &status) ? static_cast<int>(calls_.serving(0)) : -1;
  }
};

TEST_F(FindShardTest, AtHomeIfThatIsAsFarAsOthers) {
  Hold(&home(0), kPlacement, 12);
  Hold(&second(0), kPlacement, 12);
  EXPECT_EQ(Found(), 0);
}

TEST_F(FindShardTest, WhereTheNewestStateIs) {
  Hold(&home(0), kPlacement, 11);
  Hold(&second(0), kPlacement, 12);
  EXPECT_EQ(Found(), 1) << "it was served there while the home was away";
  EXPECT_TRUE(calls_.at_home(1));
}

TEST_F(FindShardTest, WhereTheMostUpdatesAreWithoutRounds) {
  Hold(&home(0), kPlacement, -1, 30);
  Hold(&second(0), kPlacement, -1, 31);
  EXPECT_EQ(Found(), 1);
}

TEST_F(FindShardTest, NotWhereThereIsAnotherPlacement) {
  Hold(&home(0), kPlacement, 3);
  Hold(&second(0), kPlacement + 1, 12);
  EXPECT_EQ(Found(), 0);
}

TEST_F(FindShardTest, ElsewhereIfTheHomeDoesNotAnswer) {
  home(0).Sever();
  Hold(&second(0), kPlacement, 3);
  EXPECT_EQ(Found(), 1);
}

TEST_F(FindShardTest, WhereTheNewestStateIsAlthoughThatPlaceIsSilentOnce) {
  for (const absl::Status& silence : {absl::DeadlineExceededError("late"), Away()}) {
    calls_.Serve(0, 0);
    Hold(&home(0), kPlacement, 11);
    Hold(&second(0), kPlacement, 12);
    second(0).FailNext(&Control::GetStatus, {silence});
    EXPECT_EQ(Found(), 1) << silence;
  }
}

TEST_F(FindShardTest, Nowhere) {
  home(0).Sever();
  second(0).Answer(&Control::GetStatus,
                   [](const auto&, v1::ShardStatus*) { return absl::OkStatus(); });
  EXPECT_EQ(Found(), -1);
  EXPECT_TRUE(calls_.at_home(0));
}

}  // namespace
}  // namespace keelson
