#include "chief/servers/server_group.h"

#include <atomic>
#include <thread>

#include "chief/servers/fake_parameter_server.h"
#include "chief/servers/round_gate.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kCut = 5;

v1::MemberList MembersOf(uint64_t epoch, const std::vector<uint64_t>& incarnations) {
  v1::MemberList list;
  list.set_epoch(epoch);
  for (const uint64_t incarnation : incarnations) {
    list.add_members()->set_incarnation(incarnation);
  }
  return list;
}

class ServerGroupTest : public testing::Test {
 protected:
  static ServerGroup::Options MakeOptions() {
    ServerGroup::Options options;
    options.header.set_incarnation(42);
    options.config_hash = FakeParameterServer::kConfigHash;
    options.chief_address = "chief:2222";
    return options;
  }
  absl::Status Store(uint64_t version) {
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(version);
    return group_.PersistState(persisted);
  }
  ServerGroupTest() {
    v1::InitializeShardRequest shards;
    shards.set_seed(5);
    group_.Describe(shards);
  }

  ManualClock clock_;
  StopSignal stop_;
  FakeParameterServer servers_[2];
  ServerStorage storage_;
  ServerGroup group_{MakeOptions(),
                     {{"ps-0", "a:1", &servers_[0]}, {"ps-1", "b:2", &servers_[1]}},
                     &storage_,
                     &clock_,
                     &stop_};
};

TEST_F(ServerGroupTest, EveryoneIsMissingUntilHeardOf) {
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-0 at a:1", "ps-1 at b:2"));
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_THAT(group_.Missing(), IsEmpty());
  EXPECT_EQ(servers_[0].last_heartbeat().chief_address(), "chief:2222");
}

TEST_F(ServerGroupTest, WithoutStorageTheTermIsTheNextAboveThatOfAllServers) {
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_chief_term(4); });
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_EQ(group_.term(), 5u);
  for (const FakeParameterServer& server : servers_) EXPECT_EQ(server.shard().chief_term(), 5u);
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_EQ(group_.term(), 5u) << "a chief has one term";
}

TEST_F(ServerGroupTest, ATermThatIsTooLowIsRaisedInTheStorageOrNotAtAll) {
  ServerGroup::Options options = MakeOptions();
  options.header.set_chief_term(3);
  absl::StatusOr<uint64_t> raised = absl::AlreadyExistsError("taken over by chief-0");
  uint64_t known = 0;
  options.raise_term = [&](uint64_t term) {
    known = term;
    return raised;
  };
  ServerGroup group(options, {{"ps-0", "a:1", &servers_[0]}}, &storage_, &clock_, &stop_);
  servers_[0].EditStatus([](v1::ShardStatus* shard) { shard->set_chief_term(7); });
  EXPECT_EQ(group.WaitUntilReachable(), absl::AlreadyExistsError("ps-0: taken over by chief-0"));
  EXPECT_EQ(known, 7u);
  EXPECT_EQ(servers_[0].probes(), 0);
  raised = 8;
  EXPECT_EQ(group.WaitUntilReachable(), absl::OkStatus());
  EXPECT_EQ(servers_[0].last_heartbeat().header().chief_term(), 8u);
  ASSERT_EQ(group.Initialize(std::nullopt, {}), absl::OkStatus());
  EXPECT_EQ(servers_[0].initializations().back().header().chief_term(), 8u);
}

TEST_F(ServerGroupTest, WaitsForAServerThatComesLate) {
  servers_[1].Sever();
  std::thread starts([&] {
    servers_[1].AwaitProbes(1);
    EXPECT_THAT(group_.Missing(), testing::Contains("ps-1 at b:2")) << "must not wait";
    servers_[1].Restore();
  });
  EXPECT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  starts.join();
  EXPECT_GE(servers_[0].probes(), 2) << "it may be another process by then";
}

TEST_F(ServerGroupTest, NamesTheServerThatNeverCame) {
  servers_[1].Sever();
  std::thread waits([&] {
    servers_[1].AwaitProbes(1);
    clock_.Advance(absl::Minutes(10));
  });
  const absl::Status status = group_.WaitUntilReachable();
  waits.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("10m"), HasSubstr("ps-1 at b:2"), Not(HasSubstr("ps-0"))));
}

// As a predecessor has left it.
void HoldShard(FakeParameterServer* server) {
  server->EditStatus([](v1::ShardStatus* shard) {
    shard->set_state(v1::ShardStatus::READY);
    shard->set_store_id(77);
    shard->set_job_state_version(3);
  });
}

TEST_F(ServerGroupTest, WaitsAsLongAsItTakesWhileAnotherServerHoldsTheRunningJob) {
  HoldShard(&servers_[0]);
  servers_[1].Sever();
  std::thread comes([&] {
    servers_[1].AwaitProbes(1);
    clock_.Advance(absl::Hours(1));
    servers_[1].AwaitProbes(4);
    servers_[1].Restore();
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  comes.join();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("still waiting for ps-1 at b:2; the job is running: ps-0 holds its shard"));
}

TEST_F(ServerGroupTest, WaitsNoLongerThanForAJobThatDoesNotRunOnceNoServerHoldsIt) {
  HoldShard(&servers_[0]);
  servers_[1].Sever();
  std::atomic<bool> ended = false;
  // Each look asks ps-1.
  const auto await_looks = [&](int count) {
    const int wanted = servers_[1].probes() + count;
    while (!ended && servers_[1].probes() < wanted) std::this_thread::yield();
  };
  std::thread restarts([&] {
    servers_[1].AwaitProbes(1);
    clock_.Advance(absl::Hours(1));
    await_looks(3);
    EXPECT_FALSE(ended);
    servers_[0].Restart();
    await_looks(3);
    EXPECT_FALSE(ended) << "it may come back within the time that all have to appear";
    clock_.Advance(absl::Minutes(10));
    await_looks(3);
    stop_.Raise();
  });
  const absl::Status status = group_.WaitUntilReachable();
  ended = true;
  restarts.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(ServerGroupTest, LearnsThatAnotherChiefHasComeWhileItWaits) {
  servers_[1].Sever();
  std::atomic<bool> ended = false;
  std::thread replaces([&] {
    servers_[1].AwaitProbes(2);
    servers_[0].Replace();
    const int wanted = servers_[1].probes() + 3;
    while (!ended && servers_[1].probes() < wanted) std::this_thread::yield();
    stop_.Raise();
  });
  const absl::Status status = group_.WaitUntilReachable();
  ended = true;
  replaces.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST_F(ServerGroupTest, AShardOfAnotherPlacementIsNoRunningJob) {
  HoldShard(&servers_[0]);
  servers_[0].EditStatus([](v1::ShardStatus* shard) { shard->set_placement_fingerprint(9); });
  servers_[1].Sever();
  std::thread waits([&] {
    servers_[1].AwaitProbes(1);
    clock_.Advance(absl::Minutes(10));
  });
  EXPECT_EQ(group_.WaitUntilReachable().code(), absl::StatusCode::kDeadlineExceeded);
  waits.join();
}

TEST_F(ServerGroupTest, AServerThatDoesNotAnswerTheSurveyIsWaitedFor) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[1].FailNext(&ParameterControl::GetStatus, {absl::UnavailableError("gone")});
  EXPECT_EQ(group_.Survey().status(), absl::UnavailableError("ps-1: gone"));
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-1 at b:2"));
}

TEST_F(ServerGroupTest, StopEndsTheWait) {
  servers_[0].Sever();
  stop_.Raise();
  EXPECT_EQ(group_.WaitUntilReachable().code(), absl::StatusCode::kCancelled);
}

TEST_F(ServerGroupTest, RefusesAServerWithAnotherConfiguration) {
  servers_[1].SetConfigHash(0xdef);
  const absl::Status status = group_.WaitUntilReachable();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("ps-1"), HasSubstr("0000000000000abc"),
                                                   HasSubstr("0000000000000def")));
}

TEST_F(ServerGroupTest, AServerThatRefusesTheTokenEndsTheWait) {
  servers_[1].FailNext(&ParameterControl::ChiefHeartbeat,
                       {absl::PermissionDeniedError("not the job's token")});
  EXPECT_EQ(group_.WaitUntilReachable(), absl::PermissionDeniedError("ps-1: not the job's token"));
}

TEST_F(ServerGroupTest, AServerOfAnotherBuildEndsTheWait) {
  servers_[1].FailNext(&ParameterControl::ChiefHeartbeat,
                       {absl::FailedPreconditionError("of another build")});
  EXPECT_EQ(group_.WaitUntilReachable(), absl::FailedPreconditionError("ps-1: of another build"));
}

TEST_F(ServerGroupTest, SaysOnceThatAServerWaitsForAnotherChiefsSilence) {
  servers_[1].FailNext(&ParameterControl::ChiefHeartbeat,
                       {absl::AlreadyExistsError("another chief was heard 2s ago"),
                        absl::AlreadyExistsError("another chief was heard 3s ago")});
  testing::internal::CaptureStderr();
  EXPECT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("waiting for ps-1: another chief was heard 2s ago"),
                    Not(HasSubstr("3s ago"))));
}

TEST_F(ServerGroupTest, EveryServerGetsItsShard) {
  ASSERT_EQ(group_.Initialize(30, {}), absl::OkStatus());
  for (uint32_t s = 0; s < 2; ++s) {
    const auto requests = servers_[s].initializations();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].shard(), s);
    EXPECT_EQ(requests[0].seed(), 5u);
    EXPECT_EQ(servers_[s].last_restore(), 30);
    EXPECT_EQ(requests[0].config_hash(), FakeParameterServer::kConfigHash);
    EXPECT_EQ(requests[0].header().incarnation(), 42u);
  }
}

TEST_F(ServerGroupTest, AnErrorNamesTheServer) {
  servers_[1].Damage(30);
  const absl::Status status = group_.Initialize(30, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "ps-1: step 30: bad checksum");
}

TEST_F(ServerGroupTest, OneServerIsMadeReadyWithTheMembers) {
  ASSERT_EQ(group_.InitializeServer(1, 30, MembersOf(3, {7, 8})), absl::OkStatus());
  EXPECT_THAT(servers_[0].initializations(), IsEmpty());
  EXPECT_THAT(servers_[1].members(), ElementsAre(7, 8));
}

TEST_F(ServerGroupTest, AServerThatCannotBeMadeReadyIsMissing) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[1].Damage(30);
  EXPECT_FALSE(group_.InitializeServer(1, 30, {}).ok());
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-1 at b:2"));
  EXPECT_EQ(group_.InitializeServer(1, 20, {}), absl::OkStatus());
  EXPECT_THAT(group_.Missing(), IsEmpty());
}

TEST_F(ServerGroupTest, SurveySaysWhatEachServerHolds) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  ASSERT_EQ(group_.InitializeServer(1, std::nullopt, {}), absl::OkStatus());
  ASSERT_EQ(Store(3), absl::OkStatus());
  const auto shards = group_.Survey();
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ((*shards)[0].state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ((*shards)[1].state(), v1::ShardStatus::READY);
  EXPECT_EQ((*shards)[1].job_state_version(), 3u);
  EXPECT_FALSE((*shards)[1].job_state().empty());
  servers_[0].Sever();
  EXPECT_THAT(std::string(group_.Survey().status().message()), HasSubstr("ps-0: "));
}

TEST_F(ServerGroupTest, AStateIsStoredWhenAllHaveItThatAnswer) {
  EXPECT_EQ(group_.stored_version(), 0u);
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  ASSERT_EQ(Store(3), absl::OkStatus());
  EXPECT_EQ(group_.stored_version(), 3u);
  servers_[1].Sever();
  EXPECT_EQ(Store(4).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(group_.stored_version(), 4u) << "who is away does not count";
  EXPECT_EQ(Store(5).code(), absl::StatusCode::kUnavailable) << "no answer is no consent";
  EXPECT_EQ(group_.Confirm().code(), absl::StatusCode::kUnavailable);
  servers_[1].Restore();
  v1::ShardStatus status;
  ASSERT_EQ(group_.ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  EXPECT_EQ(group_.stored_version(), 0u) << "it was restarted, empty";
}

TEST_F(ServerGroupTest, ServersLearnThatTheChiefStops) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  v1::ShardStatus status;
  ASSERT_EQ(group_.ChiefHeartbeat(0, {}, &status), absl::OkStatus());
  EXPECT_FALSE(servers_[0].last_heartbeat().stopping());
  stop_.Raise();
  ASSERT_EQ(group_.ChiefHeartbeat(0, {}, &status), absl::OkStatus());
  EXPECT_TRUE(servers_[0].last_heartbeat().stopping());
}

TEST_F(ServerGroupTest, AnotherChiefMattersMoreThanAServerThatIsAway) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[0].Sever();
  servers_[1].Replace();
  EXPECT_EQ(Store(3).code(), absl::StatusCode::kAborted);
}

TEST_F(ServerGroupTest, AnnouncesWithTheStateToWhoAnswers) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_FALSE(group_.KnowsMembers(0, 1)) << "until told, nobody knows the list";
  v1::PersistedJobState persisted;
  persisted.mutable_job()->set_state_version(5);
  group_.Announce(MembersOf(1, {7}), persisted);
  EXPECT_THAT(servers_[0].members(), ElementsAre(7));
  EXPECT_EQ(servers_[0].shard().job_state_version(), 5u);
  EXPECT_TRUE(group_.KnowsMembers(0, 1));
  servers_[1].Sever();
  group_.Announce(MembersOf(2, {7, 8}), persisted);
  EXPECT_THAT(servers_[0].members(), ElementsAre(7, 8));
  EXPECT_TRUE(group_.KnowsMembers(0, 2));
  EXPECT_FALSE(group_.KnowsMembers(1, 2));
  const int probes = servers_[1].probes();
  group_.Announce(MembersOf(3, {8}), persisted);
  EXPECT_EQ(servers_[1].probes(), probes) << "one try is enough";
  EXPECT_THAT(servers_[0].members(), ElementsAre(8));
  servers_[0].Restart();
  v1::ShardStatus status;
  ASSERT_EQ(group_.ChiefHeartbeat(0, {}, &status), absl::OkStatus());
  EXPECT_FALSE(group_.KnowsMembers(0, 3)) << "it was restarted";
}

TEST_F(ServerGroupTest, AServerThatIsEndingIsNotToldWhoIsLost) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  group_.Finish();
  const int probes = servers_[0].probes();
  group_.Announce(MembersOf(1, {7}), {});
  EXPECT_EQ(servers_[0].probes(), probes);
  EXPECT_EQ(servers_[1].probes(), probes);
}

TEST_F(ServerGroupTest, ASlowSnapshotDelaysNobody) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[0].Block(&ParameterControl::WriteSnapshot, true);
  std::thread writes([&] { EXPECT_TRUE(group_.WriteSnapshot({kCut}, 0, 3, {}).ok()); });
  servers_[0].AwaitSnapshots(1);
  EXPECT_EQ(Store(3), absl::OkStatus());
  group_.Announce(MembersOf(1, {7}), {});
  EXPECT_EQ(group_.InitializeServer(1, std::nullopt, {}), absl::OkStatus());
  EXPECT_EQ(group_.CommitRound({1, 1, 1}, stop_), absl::OkStatus());
  servers_[0].Block(&ParameterControl::WriteSnapshot, false);
  writes.join();
}

TEST_F(ServerGroupTest, ARoundIsCommittedEverywhere) {
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  for (const FakeParameterServer& server : servers_) {
    ASSERT_EQ(server.commits().size(), 1u);
    EXPECT_EQ(server.commits()[0].header().incarnation(), 42u);
    EXPECT_EQ(server.commits()[0].round(), 12);
    EXPECT_EQ(server.commits()[0].attempt(), 3u);
    EXPECT_EQ(server.commits()[0].contributions(), 4u);
  }
}

TEST_F(ServerGroupTest, ACommitIsRepeatedUntilItIsAnswered) {
  servers_[1].FailCommits(
      {absl::UnavailableError("restarting"), absl::DeadlineExceededError("slow")});
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  EXPECT_EQ(servers_[0].commits().size(), 1u);
  EXPECT_EQ(servers_[1].commits().size(), 3u);
}

TEST_F(ServerGroupTest, ARoundIsCommittedThoughARestartedServerLostIt) {
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  ASSERT_EQ(servers_[1].commits().size(), 2u);
  EXPECT_TRUE(servers_[1].commits()[1].lost());
  EXPECT_EQ(servers_[1].shard().committed_round(), 12);
}

TEST_F(ServerGroupTest, ARoundThatARestoredServerLacksIsNotCommitted) {
  ASSERT_EQ(group_.InitializeServer(1, 5, {}), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.CommitRound({12, 3, 4}, stop_),
            absl::FailedPreconditionError("ps-1: 1 of 4 pushes"));
  EXPECT_TRUE(servers_[0].commits().empty()) << "so the round can be begun again";
  EXPECT_EQ(group_.CommitRound({12, 4, 4}, stop_), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_EQ(group_.CommitRound({13, 5, 4}, stop_), absl::OkStatus()) << "it was sure by then";
  EXPECT_TRUE(servers_[1].commits().back().lost());
}

TEST_F(ServerGroupTest, ServersThatMayLackPushesAreAskedBeforeAnyCommits) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  for (const size_t s : {0, 1}) ASSERT_EQ(group_.InitializeServer(s, 6, {}), absl::OkStatus());
  servers_[1].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  EXPECT_TRUE(absl::IsFailedPrecondition(group_.CommitRound({12, 3, 4}, stop_)));
  ASSERT_EQ(servers_[0].commits().size(), 1u);
  EXPECT_TRUE(servers_[0].commits()[0].only_ask());
  EXPECT_EQ(servers_[0].shard().committed_round(), -1);
}

TEST_F(ServerGroupTest, ARoundThatALeavingServersSuccessorLacksIsNotCommitted) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_EQ(group_.CommitRound({11, 3, 4}, stop_), absl::OkStatus());
  v1::ShardStatus status;
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(true); });
  ASSERT_EQ(group_.ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  // Its snapshot is committed.
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(false); });
  ASSERT_EQ(group_.ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  const size_t before = servers_[0].commits().size();
  servers_[1].FailCommits({absl::UnavailableError("this server leaves"),
                           absl::FailedPreconditionError("0 of 4 pushes")});
  EXPECT_TRUE(absl::IsFailedPrecondition(group_.CommitRound({12, 3, 4}, stop_)));
  EXPECT_EQ(servers_[0].commits().size(), before);
}

// A chief that was replaced may have made the shard of a server that was restarted. That shard is
// made again, so what is committed there would be lost.
TEST_F(ServerGroupTest, ARoundIsCommittedAtTheShardsThatTheChiefKnows) {
  ASSERT_EQ(group_.Initialize(5, {}), absl::OkStatus());
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  for (FakeParameterServer& server : servers_) {
    EXPECT_NE(server.shard().store_id(), 0u);
    EXPECT_EQ(server.commits().back().store_id(), server.shard().store_id());
  }
}

TEST_F(ServerGroupTest, ARoundThatNobodyHasIsNotCommitted) {
  for (FakeParameterServer& server : servers_) {
    server.FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  }
  const absl::Status status = group_.CommitRound({12, 3, 4}, stop_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "ps-0: 1 of 4 pushes");
}

TEST_F(ServerGroupTest, AnErrorOfACommitIsTold) {
  servers_[0].FailCommits({absl::FailedPreconditionError("1 of 4 pushes")});
  servers_[1].FailCommits({absl::AbortedError("another chief")});
  EXPECT_EQ(group_.CommitRound({12, 3, 4}, stop_).code(), absl::StatusCode::kAborted);
}

TEST_F(ServerGroupTest, ACommitAtOneServerHasItsPatience) {
  servers_[1].FailCommits(std::vector<absl::Status>(100, absl::UnavailableError("gone")));
  EXPECT_EQ(group_.CommitRoundAt(1, {12, 3, 4}, absl::ZeroDuration(), stop_).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(servers_[0].commits().empty());
}

TEST_F(ServerGroupTest, StopEndsARepeatedCommit) {
  servers_[1].FailCommits(std::vector<absl::Status>(100, absl::UnavailableError("gone")));
  stop_.Raise();
  EXPECT_EQ(group_.CommitRound({12, 3, 4}, stop_).code(), absl::StatusCode::kCancelled);
}

TEST_F(ServerGroupTest, WriteSnapshotJoinsTheParts) {
  const std::string directory = FreshDirectory();
  for (FakeParameterServer& server : servers_) server.SetModelDir(directory);
  const auto written = group_.WriteSnapshot({kCut}, 7, 3, {});
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_EQ(written->entries.size(), 2u);
  EXPECT_EQ(written->entries[0].key, "v0");
  EXPECT_EQ(written->entries[1].entry.shard_id(), 1);
  EXPECT_EQ(written->bytes, 24);
  EXPECT_EQ(written->longest_cut_microseconds, 7);
  EXPECT_TRUE(FileExists(JoinPath(directory, "model.ckpt-7.data-00001-of-00003.tempstate0-5")));
}

TEST_F(ServerGroupTest, ACutIsPreparedEverywhereAndWritten) {
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  bool begun = false;
  const auto cut = group_.PrepareCut(
      [&] {
        begun = true;
        for (FakeParameterServer& server : servers_) {
          EXPECT_EQ(server.Count(&ParameterControl::PrepareCut), 0);
        }
      },
      {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(begun);
  EXPECT_NE(cut->id, 0u);
  EXPECT_EQ(cut->committed_round, 12);
  group_.WriteSnapshot(*cut, 13, 3, {}).IgnoreError();  // the fakes have no directory
  for (FakeParameterServer& server : servers_) {
    EXPECT_EQ(server.Requests(&ParameterControl::PrepareCut).at(0).cut_id(), cut->id);
    EXPECT_EQ(server.Requests(&ParameterControl::WriteSnapshot).at(0).cut_id(), cut->id);
  }
}

TEST_F(ServerGroupTest, RowsOfTheSecondServerStandBehindThoseOfTheFirst) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3, 9});
  const auto cut = group_.PrepareCut([] {}, {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  group_.WriteSnapshot(*cut, 13, 3, {}).IgnoreError();  // the fakes have no directory
  const auto places = [&](size_t s) {
    const auto request = servers_[s].Requests(&ParameterControl::WriteSnapshot).at(0);
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const v1::TableRows& table : request.tables()) {
      found.emplace_back(table.first_row(), table.total_rows());
    }
    return found;
  };
  EXPECT_THAT(places(0), testing::ElementsAre(testing::Pair(0, 8), testing::Pair(0, 9)));
  EXPECT_THAT(places(1), testing::ElementsAre(testing::Pair(5, 8), testing::Pair(0, 9)));
}

TEST_F(ServerGroupTest, ADeltaIsPossibleWhereAllServersKnowWhatHasChanged) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3, 9});
  const auto first = group_.PrepareCut([] {}, {.keep = true, .base = 0});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->changes, testing::IsEmpty());
  servers_[0].SetChanges({{2, 7}, {0, 0}});
  servers_[1].SetChanges({{1, 4}, {6, 0}});
  const auto cut = group_.PrepareCut([] {}, {.keep = true, .base = first->id});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->rows.all, 17);
  EXPECT_EQ(cut->rows.changed, 9);
  v1::SnapshotBase base;
  base.set_step(12);
  group_.WriteSnapshot(*cut, 13, 3, base).IgnoreError();  // the fakes have no directory
  const auto request = servers_[1].Requests(&ParameterControl::WriteSnapshot).at(0);
  EXPECT_EQ(request.base().step(), 12);
  ASSERT_EQ(request.tables_size(), 2);
  EXPECT_EQ(request.tables(0).first_row(), 2);
  EXPECT_EQ(request.tables(0).total_rows(), 3);
  EXPECT_EQ(request.tables(0).first_erased(), 7);
  EXPECT_EQ(request.tables(0).total_erased(), 11);
  EXPECT_EQ(request.tables(1).first_row(), 0);
  EXPECT_EQ(request.tables(1).total_rows(), 6);
  // One that has lost its shard does not know.
  servers_[1].Restart();
  ASSERT_EQ(group_.InitializeServer(1, std::nullopt, {}), absl::OkStatus());
  const auto next = group_.PrepareCut([] {}, {.keep = true, .base = cut->id});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(next->changes, testing::IsEmpty());
}

TEST_F(ServerGroupTest, CutsOfOtherTablesAreRefused) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3});
  EXPECT_EQ(group_.PrepareCut([] {}, {}).status(),
            absl::InternalError("ps-1: expected a cut of 2 tables as at other servers, found 1"));
}

TEST_F(ServerGroupTest, AServerThatDoesNotAnswerHasNoCut) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[1].Sever();
  EXPECT_EQ(group_.PrepareCut([] {}, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ServerGroupTest, UnequalCutsAreRefusedAndTheNextOnesAreEqual) {
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_committed_round(11); });
  EXPECT_EQ(
      group_.PrepareCut([] {}, {}).status(),
      absl::UnavailableError("ps-1: expected a cut of round 12 as at other servers, found 11"));
  EXPECT_TRUE(servers_[1].commits().back().lost());
  const auto cut = group_.PrepareCut([] {}, {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->committed_round, 12);
}

TEST_F(ServerGroupTest, NoCutIsPreparedInTheMidstOfARound) {
  servers_[1].Block(&ParameterControl::CommitRound, true);
  std::vector<std::string> events;
  std::thread commits([&] {
    EXPECT_EQ(group_.CommitRound({12, 3, 4}, stop_, [&] { events.emplace_back("committed"); }),
              absl::OkStatus());
  });
  servers_[0].AwaitCount(&ParameterControl::CommitRound, 1);
  std::thread cuts([&] {
    const auto cut = group_.PrepareCut([&] { events.emplace_back("cut"); }, {});
    EXPECT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(cut->committed_round, 12);
  });
  servers_[1].Block(&ParameterControl::CommitRound, false);
  commits.join();
  cuts.join();
  EXPECT_THAT(events, ElementsAre("committed", "cut"));
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

TEST_F(ServerGroupTest, ARestoredServerCountsTheRoundsOfTheJobAsDone) {
  ASSERT_EQ(group_.CommitRound({12, 3, 4}, stop_), absl::OkStatus());
  ASSERT_EQ(group_.InitializeServer(1, 5, {}), absl::OkStatus());
  EXPECT_EQ(servers_[1].initializations().back().committed_round(), 12);
}

TEST_F(ServerGroupTest, WriteSnapshotReportsWhoCouldNot) {
  servers_[0].FailSnapshots(1);
  const auto written = group_.WriteSnapshot({kCut}, 0, 3, {});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(written.status().message()), HasSubstr("ps-0: no space"));
}

TEST_F(ServerGroupTest, StatesFollowTheCalls) {
  const auto states = [&] {
    std::vector<std::string> names;
    for (const ServerView& state : group_.States()) {
      names.push_back(absl::StrCat(state.task.ToString(), " ", ServerKindName(state.kind)));
    }
    return names;
  };
  EXPECT_THAT(states(), ElementsAre("ps-0 waiting", "ps-1 waiting"));
  EXPECT_EQ(group_.States()[1].address, "b:2");
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  EXPECT_THAT(states(), ElementsAre("ps-0 restoring", "ps-1 restoring"));
  ASSERT_EQ(group_.Initialize(std::nullopt, {}), absl::OkStatus());
  EXPECT_THAT(states(), ElementsAre("ps-0 alive", "ps-1 alive"));
  servers_[1].Sever();
  EXPECT_FALSE(Store(1).ok());
  EXPECT_THAT(states(), ElementsAre("ps-0 alive", "ps-1 lost"));
  group_.Finish();
  EXPECT_THAT(states(), ElementsAre("ps-0 left", "ps-1 lost"));
}

TEST_F(ServerGroupTest, FinishTellsEveryone) {
  servers_[0].Sever();
  group_.Finish();
  EXPECT_EQ(servers_[0].finished(), 1);
  EXPECT_EQ(servers_[1].finished(), 1);
}

}  // namespace
}  // namespace keelson
