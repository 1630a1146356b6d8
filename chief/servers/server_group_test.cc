#include "chief/servers/server_group.h"

#include <atomic>
#include <thread>

#include "chief/servers/server_group_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::MemberList MembersOf(uint64_t epoch, const std::vector<uint64_t>& incarnations) {
  v1::MemberList list;
  list.set_epoch(epoch);
  for (const uint64_t incarnation : incarnations) {
    list.add_members()->set_incarnation(incarnation);
  }
  return list;
}

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
  std::thread writes([&] { EXPECT_TRUE(group_.cuts()->Write({kCut}, 0, 3, {}).ok()); });
  servers_[0].AwaitSnapshots(1);
  EXPECT_EQ(Store(3), absl::OkStatus());
  group_.Announce(MembersOf(1, {7}), {});
  EXPECT_EQ(group_.InitializeServer(1, std::nullopt, {}), absl::OkStatus());
  EXPECT_EQ(group_.rounds()->Commit({1, 1, 1}, stop_), absl::OkStatus());
  servers_[0].Block(&ParameterControl::WriteSnapshot, false);
  writes.join();
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
