// Shards that may be served at several places, as the group and its supervision move them.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chief/servers/fake_parameter_server.h"
#include "chief/servers/server_group.h"
#include "chief/servers/server_supervisor.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using Control = ParameterControl;

constexpr size_t kHosts = 3;
constexpr uint64_t kPlacementHash = 99;

// Three hosts, each the home of a shard; every host may serve every shard.
class ShardMovesTest : public testing::Test {
 protected:
  ShardMovesTest() {
    for (auto& fake : fakes_) {
      fake = std::make_unique<FakeParameterServer>();
      fake->Answer(&Control::ReplicateShard, [server = fake.get()](const auto&, auto* response) {
        server->EditStatus([](v1::ShardStatus* shard) {
          shard->set_state(v1::ShardStatus::READY);
          shard->set_placement_fingerprint(kPlacementHash);
          shard->set_store_id(1000);
        });
        *response->mutable_status() = server->shard();
        return absl::OkStatus();
      });
    }
  }

  // What serves the shard at a host, if it is there.
  FakeParameterServer& at(size_t host, size_t shard) { return *fakes_[host * kHosts + shard]; }
  void Kill(size_t host) {
    for (size_t s = 0; s < kHosts; ++s) at(host, s).Sever();
  }
  void AskToStop(size_t host) {
    for (size_t s = 0; s < kHosts; ++s) {
      at(host, s).EditStatus([](v1::ShardStatus* shard) { shard->set_asked_to_stop(true); });
    }
  }
  ServerCalls::Server Server(size_t host, size_t shard) {
    return {ShardName(static_cast<int>(shard), HostTask(host)),
            hosts_register_ ? "" : absl::StrCat("host", host, ":1"), &at(host, shard),
            HostTask(host)};
  }
  static Task HostTask(size_t host) { return {Role::kWorker, static_cast<int>(host)}; }
  std::vector<ServerCalls::Server> Servers() {
    std::vector<ServerCalls::Server> servers;
    for (size_t s = 0; s < kHosts; ++s) {
      servers.push_back(Server(s, s));
      for (size_t next = 1; next < kHosts; ++next) {
        servers.back().others.push_back(Server((s + next) % kHosts, s));
      }
    }
    return servers;
  }
  std::unique_ptr<ServerGroup> Group(bool replicas) {
    ServerGroup::Options options;
    options.header.set_incarnation(42);
    options.config_hash = FakeParameterServer::kConfigHash;
    options.replicas = replicas;
    auto group = std::make_unique<ServerGroup>(options, Servers(), &storage_, &clock_, &stop_);
    v1::InitializeShardRequest shards;
    shards.set_placement_fingerprint(kPlacementHash);
    group->Describe(shards);
    return group;
  }
  std::unique_ptr<ServerGroup> Started(bool replicas) {
    auto group = Group(replicas);
    EXPECT_EQ(group->WaitUntilReachable(), absl::OkStatus());
    EXPECT_EQ(group->Initialize(std::nullopt, {}), absl::OkStatus());
    return group;
  }
  // A predecessor's job runs: every shard is at home, and shard 1 has a copy at host 2.
  void LeaveRunningJob() {
    Started(/*replicas=*/false);
    for (FakeParameterServer* server : {&at(0, 0), &at(1, 1), &at(2, 2), &at(2, 1)}) {
      server->EditStatus([](v1::ShardStatus* shard) {
        shard->set_state(v1::ShardStatus::READY);
        shard->set_placement_fingerprint(kPlacementHash);
        shard->set_job_state_version(7);
      });
    }
  }
  static bool Dropped(const FakeParameterServer& server) {
    const auto requests = server.Requests(&Control::Finish);
    return !requests.empty() && requests.back().moved();
  }

  bool hosts_register_ = false;  // their addresses are unknown at first
  ManualClock clock_;
  StopSignal stop_;
  ServerStorage storage_;
  std::vector<std::unique_ptr<FakeParameterServer>> fakes_{kHosts * kHosts};
};

TEST_F(ShardMovesTest, AHostThatLeavesHandsItsShardOver) {
  const auto group = Started(/*replicas=*/false);
  AskToStop(1);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  EXPECT_THAT(group->Addresses(), ElementsAre("host0:1", "host2:1", "host2:1"));
  EXPECT_EQ(group->name(1), "shard-1 of worker-2");
  EXPECT_EQ(group->HostOf(1), HostTask(2));
  EXPECT_EQ(at(2, 1).Requests(&Control::ReplicateShard).back().from(), "host1:1");
  EXPECT_TRUE(Dropped(at(1, 1)));
  EXPECT_FALSE(group->HasReplica(1));
  v1::ShardStatus status;
  ASSERT_EQ(group->ChiefHeartbeat(1, {}, &status), absl::OkStatus());
  EXPECT_FALSE(group->HoldsForeignShard(1, status));
}

TEST_F(ShardMovesTest, NotToAHostThatLeavesToo) {
  const auto group = Started(/*replicas=*/false);
  AskToStop(1);
  AskToStop(2);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  EXPECT_EQ(group->HostOf(1), HostTask(0));
  AskToStop(0);
  EXPECT_TRUE(absl::IsUnavailable(group->HandOver(0, {})));
  EXPECT_EQ(group->HostOf(0), HostTask(0));
  EXPECT_FALSE(Dropped(at(0, 0)));
}

TEST_F(ShardMovesTest, ACopyThatFailsLeavesTheShardWhereItIs) {
  const auto group = Started(/*replicas=*/false);
  AskToStop(1);
  at(2, 1).FailNext(&Control::ReplicateShard, {absl::UnavailableError("gone")});
  EXPECT_TRUE(absl::IsUnavailable(group->HandOver(1, {})));
  EXPECT_EQ(group->HostOf(1), HostTask(1));
  EXPECT_FALSE(Dropped(at(1, 1)));
}

TEST_F(ShardMovesTest, ItsReplicaTakesTheShardOfAHostThatLeavesWithoutACopy) {
  const auto group = Started(/*replicas=*/true);
  for (size_t s = 0; s < kHosts; ++s) ASSERT_FALSE(*group->Settle(s, true, {}));
  EXPECT_TRUE(group->HasReplica(1));
  AskToStop(1);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  EXPECT_EQ(group->HostOf(1), HostTask(2));
  EXPECT_EQ(at(2, 1).Count(&Control::ReplicateShard), 1);
  EXPECT_TRUE(Dropped(at(1, 1)));
  // The replica that it held is made elsewhere.
  EXPECT_FALSE(group->HasReplica(0));
  AskToStop(1);  // the fake has forgotten it with its shards
  ASSERT_FALSE(*group->Settle(0, true, {}));
  EXPECT_TRUE(group->HasReplica(0));
  EXPECT_EQ(at(2, 0).Count(&Control::ReplicateShard), 1);
}

TEST_F(ShardMovesTest, WithReplicasAShardGoesHomeByItself) {
  const auto group = Started(/*replicas=*/true);
  for (size_t s = 0; s < kHosts; ++s) ASSERT_FALSE(*group->Settle(s, true, {}));
  Kill(1);
  ASSERT_EQ(group->MoveToReplica(1), absl::OkStatus());
  EXPECT_EQ(group->HostOf(1), HostTask(2));
  EXPECT_TRUE(at(1, 1).given_up());
  EXPECT_FALSE(at(2, 1).given_up());
  EXPECT_TRUE(group->Misplaced(1, true));
  ASSERT_FALSE(*group->Settle(1, true, {})) << "a third host has the replica meanwhile";
  EXPECT_EQ(at(0, 1).Count(&Control::ReplicateShard), 1);
  ASSERT_FALSE(*group->Settle(1, true, {}));
  EXPECT_EQ(at(0, 1).Count(&Control::ReplicateShard), 1);
  EXPECT_TRUE(group->Misplaced(1, true));
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  ASSERT_TRUE(*group->Settle(1, true, {}));
  EXPECT_EQ(group->HostOf(1), HostTask(1));
  EXPECT_TRUE(group->HasReplica(1)) << "where it was served meanwhile";
  EXPECT_TRUE(Dropped(at(0, 1)));
  EXPECT_FALSE(group->Misplaced(1, true));
}

// It would hold what it had served as unsaved, and stay for that.
TEST_F(ShardMovesTest, AHostThatLeavesIsNotKeptAsTheReplicaOfAShardThatGoesHome) {
  const auto group = Started(/*replicas=*/true);
  for (size_t s = 0; s < kHosts; ++s) ASSERT_FALSE(*group->Settle(s, true, {}));
  Kill(1);
  ASSERT_EQ(group->MoveToReplica(1), absl::OkStatus());
  AskToStop(2);
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  ASSERT_TRUE(*group->Settle(1, true, {}));
  EXPECT_EQ(group->HostOf(1), HostTask(1));
  EXPECT_FALSE(group->HasReplica(1));
  EXPECT_TRUE(Dropped(at(2, 1)));
}

TEST_F(ShardMovesTest, AHostThatLeavesKeepsNoReplicas) {
  const auto group = Started(/*replicas=*/true);
  for (size_t s = 0; s < kHosts; ++s) ASSERT_FALSE(*group->Settle(s, true, {}));
  AskToStop(1);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  EXPECT_FALSE(group->HasReplica(0));
  EXPECT_TRUE(Dropped(at(1, 0))) << "it may have served it before";
}

TEST_F(ShardMovesTest, AHostThatLeavesKeepsTheReplicaOfAShardWhoseHostDoesNotAnswer) {
  const auto group = Started(/*replicas=*/true);
  for (size_t s = 0; s < kHosts; ++s) ASSERT_FALSE(*group->Settle(s, true, {}));
  AskToStop(1);
  Kill(0);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  EXPECT_FALSE(Dropped(at(1, 0)));
  ASSERT_EQ(group->MoveToReplica(0), absl::OkStatus());
  EXPECT_EQ(group->HostOf(0), HostTask(1));
}

// A process that has just come may be the only one that is left when the leader ends.
TEST_F(ShardMovesTest, WhereAShardGoesTheJobStateIsFirst) {
  const auto group = Started(/*replicas=*/true);
  v1::PersistedJobState persisted;
  for (const uint64_t version : {7, 6}) {
    persisted.mutable_job()->set_state_version(version);
    ASSERT_EQ(group->PersistState(persisted), absl::OkStatus());
  }
  ASSERT_FALSE(*group->Settle(1, true, {}));
  EXPECT_EQ(at(2, 1).shard().job_state_version(), 0u) << "it does not serve the shard";
  Kill(1);
  ASSERT_EQ(group->MoveToReplica(1), absl::OkStatus());
  EXPECT_EQ(at(2, 1).shard().job_state_version(), 7u);
  for (size_t s = 0; s < kHosts; ++s) {
    at(1, s).Restart();
    at(1, s).Restore();
  }
  at(1, 1).FailNext(&Control::ChiefHeartbeat, {absl::UnavailableError("gone")});
  EXPECT_TRUE(absl::IsUnavailable(group->Settle(1, true, {}).status()));
  EXPECT_EQ(group->HostOf(1), HostTask(2));
  ASSERT_TRUE(*group->Settle(1, true, {}));
  EXPECT_EQ(group->HostOf(1), HostTask(1));
  EXPECT_EQ(at(1, 1).shard().job_state_version(), 7u);
}

TEST_F(ShardMovesTest, WithoutRoundsAShardGoesHomeOnlyByHandOver) {
  for (const bool replicas : {false, true}) {
    const auto group = Started(replicas);
    AskToStop(1);
    ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
    AskToStop(1);  // the fake has forgotten it with its shard
    EXPECT_TRUE(group->Misplaced(1, false));
    EXPECT_FALSE(*group->Settle(1, /*sync_period=*/0, {}));
    EXPECT_FALSE(group->MayGoHome(1)) << "it is still on its way out";
    for (size_t s = 0; s < kHosts; ++s) {
      at(1, s).EditStatus([](v1::ShardStatus* shard) { shard->set_asked_to_stop(false); });
    }
    EXPECT_FALSE(*group->Settle(1, /*sync_period=*/0, {}));
    EXPECT_TRUE(group->MayGoHome(1));
    ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
    EXPECT_EQ(group->HostOf(1), HostTask(1));
    EXPECT_FALSE(group->MayGoHome(1));
    EXPECT_FALSE(group->Misplaced(1, false));
    EXPECT_FALSE(group->HasReplica(1));
  }
}

TEST_F(ShardMovesTest, AChiefFindsAShardThatItsHomeDoesNotHave) {
  {
    const auto group = Started(/*replicas=*/false);
    AskToStop(1);
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(7);
    ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
    for (size_t s : {0, 2}) {
      at(s, s).EditStatus(
          [](v1::ShardStatus* shard) { shard->set_placement_fingerprint(kPlacementHash); });
    }
    ASSERT_EQ(group->PersistState(persisted), absl::OkStatus());
  }
  Kill(1);
  const auto next = Group(/*replicas=*/false);
  ASSERT_EQ(next->WaitUntilReachable(), absl::OkStatus()) << "the home may never come back";
  EXPECT_EQ(next->HostOf(1), HostTask(2));
  ASSERT_TRUE(next->Survey().ok());
  EXPECT_EQ(next->HostOf(1), HostTask(2));
  EXPECT_EQ(at(2, 1).last_heartbeat().header().incarnation(), 42u);
}

// It lives, and may have the only copy of another shard, which would be made from a snapshot.
TEST_F(ShardMovesTest, AHostThatHasNotRegisteredYetKeepsItsShard) {
  LeaveRunningJob();
  Kill(1);
  hosts_register_ = true;
  const auto next = Group(/*replicas=*/true);
  std::thread registers([&] {
    at(1, 1).AwaitProbes(4);
    next->NoteAddress(HostTask(1), "host1:7");
    for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  });
  EXPECT_EQ(next->WaitUntilReachable(), absl::OkStatus());
  registers.join();
  EXPECT_EQ(next->HostOf(1), HostTask(1));
}

TEST_F(ShardMovesTest, AHostThatDoesNotRegisterForLongIsDoneWithout) {
  LeaveRunningJob();
  Kill(1);
  hosts_register_ = true;
  const auto next = Group(/*replicas=*/true);
  std::thread passes([&] {
    at(1, 1).AwaitProbes(4);
    clock_.Advance(absl::Seconds(5));
  });
  EXPECT_EQ(next->WaitUntilReachable(), absl::OkStatus());
  passes.join();
  EXPECT_EQ(next->HostOf(1), HostTask(2));
}

TEST_F(ShardMovesTest, TheEndIsToldToEveryHost) {
  const auto group = Started(/*replicas=*/false);
  AskToStop(1);
  ASSERT_EQ(group->HandOver(1, {}), absl::OkStatus());
  group->Finish();
  EXPECT_EQ(at(1, 1).Count(&Control::Finish), 2) << "the shard has gone, and the end";
  EXPECT_EQ(at(2, 1).Count(&Control::Finish), 1);
  EXPECT_FALSE(at(1, 1).Requests(&Control::Finish).back().moved());
}

// The supervision of shard 1, whose job may be asynchronous.
class SupervisedMovesTest : public ShardMovesTest {
 protected:
  ServerSupervisor::Job Job() {
    ServerSupervisor::Job job;
    job.persisted = [] { return v1::PersistedJobState(); };
    job.members = [] { return v1::MemberList(); };
    job.member_epoch = [] { return uint64_t{0}; };
    job.note_stored = [](uint64_t) {};
    job.snapshots = [] { return std::vector<SnapshotInfo>(); };
    job.note_replaced = [](const absl::Status& status) { FAIL() << status; };
    job.note_committed = [this](int64_t) {
      if (after_heartbeat_ != nullptr) std::exchange(after_heartbeat_, nullptr)();
    };
    job.note_moved = [this](const std::optional<Task>& lost) {
      EXPECT_TRUE(mode_held_);
      lost_.push_back(lost);
    };
    job.hold_mode = [this] {
      mode_held_ = true;
      return sync_period_;
    };
    job.release_mode = [this] { mode_held_ = false; };
    return job;
  }
  void VisitUntilLost() {
    for (int i = 0; i < 3; ++i) supervisor_.Visit(1);
  }

  uint64_t sync_period_ = 1;
  bool mode_held_ = false;
  std::function<void()> after_heartbeat_;  // of the next visit
  std::vector<std::optional<Task>> lost_;
  const ServerSupervisor::Pauses pauses_{};
  std::unique_ptr<ServerGroup> group_ = Started(/*replicas=*/true);
  ServerSupervisor supervisor_{group_.get(), Job(), &clock_, pauses_};
};

TEST_F(SupervisedMovesTest, TheReplicaOfALostHostServesItsShard) {
  supervisor_.Visit(1);
  EXPECT_TRUE(group_->HasReplica(1));
  Kill(1);
  VisitUntilLost();
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_THAT(lost_, ElementsAre(std::optional<Task>(HostTask(1))));
}

// While its own shard was not yet known to be lost.
TEST_F(SupervisedMovesTest, AReplicaThatARestartedHostHasGotAgainIsKept) {
  for (size_t s = 0; s < kHosts; ++s) supervisor_.Visit(s);
  ASSERT_TRUE(group_->HasReplica(0));
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restart();
  group_->ForgetReplica(0);
  ASSERT_EQ(group_->Settle(0, sync_period_, {}).status(), absl::OkStatus());
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_TRUE(group_->HasReplica(0));
}

TEST_F(SupervisedMovesTest, AReplicaThatARestartedHostLacksIsGivenUp) {
  for (size_t s = 0; s < kHosts; ++s) supervisor_.Visit(s);
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restart();
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_FALSE(group_->HasReplica(0));
}

TEST_F(SupervisedMovesTest, AReplicaThatIsSilentOnceServesTheShardOfARestartedHost) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  at(1, 1).Restart();
  at(2, 1).FailNext(&Control::GetStatus, {absl::DeadlineExceededError("late")});
  supervisor_.Visit(1);
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 1) << "the start's: it was made anew";
}

TEST_F(SupervisedMovesTest, TheOnlyCopyOfAShardIsWaitedFor) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  at(1, 1).Restart();
  at(2, 1).Sever();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(supervisor_.Visit(1), pauses_.away);
  clock_.Advance(pauses_.only_copy - absl::Milliseconds(1));
  EXPECT_EQ(supervisor_.Visit(1), pauses_.away);
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 1) << "the start's: it was made anew";
  at(2, 1).Restore();
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 1);
}

TEST_F(SupervisedMovesTest, AReplicaThatIsSilentForLongIsLostAndTheShardMadeAnew) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  at(1, 1).Restart();
  at(2, 1).Sever();
  supervisor_.Visit(1);
  clock_.Advance(pauses_.only_copy);
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(1));
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 2);
  EXPECT_EQ(at(0, 1).Count(&Control::ReplicateShard), 1) << "the former one has another state";
}

TEST_F(SupervisedMovesTest, AReplicaThatHasBeenRestartedIsNotWaitedFor) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  at(1, 1).Restart();
  at(2, 1).Sever();
  supervisor_.Visit(1);
  at(2, 1).Restart();
  at(2, 1).Restore();
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(1));
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 2);
}

// Host 2 has its own shard, and the only copy of that of host 1.
TEST_F(SupervisedMovesTest, AHostThatIsLostStaysTheReplicaOfAShardWhoseHostIsLostToo) {
  for (size_t s = 0; s < kHosts; ++s) supervisor_.Visit(s);
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restart();
  Kill(2);
  supervisor_.Visit(1);
  for (int i = 0; i < 2; ++i) supervisor_.Visit(2);
  ASSERT_EQ(group_->HostOf(2), HostTask(0));
  supervisor_.Visit(1);
  for (size_t s = 0; s < kHosts; ++s) at(2, s).Restore();
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_EQ(at(1, 1).Count(&Control::Initialize), 1);
}

TEST_F(SupervisedMovesTest, AShardThatIsHandedOverDuringAVisitIsNotMadeAnew) {
  supervisor_.Visit(1);
  AskToStop(1);
  after_heartbeat_ = [this] { EXPECT_EQ(group_->HandOver(1, {}), absl::OkStatus()); };
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(2));
  EXPECT_EQ(at(2, 1).Count(&Control::Initialize), 0);
}

TEST_F(SupervisedMovesTest, AReplicaThatGetsNoUpdatesServesNothing) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  sync_period_ = 0;
  Kill(1);
  VisitUntilLost();
  EXPECT_EQ(group_->HostOf(1), HostTask(1));
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  supervisor_.Visit(1);
  EXPECT_FALSE(group_->HasReplica(1));
  EXPECT_TRUE(Dropped(at(2, 1)));
  EXPECT_THAT(lost_, testing::IsEmpty());
}

TEST_F(SupervisedMovesTest, AReplicaThatHasMissedAsynchronousUpdatesServesNothing) {
  supervisor_.Visit(1);
  ASSERT_TRUE(group_->HasReplica(1));
  // The job has been asynchronous, and is synchronous again.
  sync_period_ = 2;
  Kill(1);
  VisitUntilLost();
  EXPECT_EQ(group_->HostOf(1), HostTask(1));
  EXPECT_FALSE(group_->HasReplica(1));
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  clock_.Advance(pauses_.replica);
  supervisor_.Visit(1);
  EXPECT_TRUE(group_->HasReplica(1)) << "another one";
  EXPECT_EQ(at(2, 1).Count(&Control::ReplicateShard), 2);
}

// What is pushed at the former place after the copy would be lost.
TEST_F(SupervisedMovesTest, TheModeStaysWhileAShardGoesHome) {
  supervisor_.Visit(1);
  Kill(1);
  VisitUntilLost();
  ASSERT_EQ(group_->HostOf(1), HostTask(2));
  for (size_t s = 0; s < kHosts; ++s) at(1, s).Restore();
  at(1, 1).After(&Control::ReplicateShard, [this](const auto&, auto*) {
    EXPECT_TRUE(mode_held_);
    return absl::OkStatus();
  });
  clock_.Advance(pauses_.replica);
  supervisor_.Visit(1);
  EXPECT_EQ(group_->HostOf(1), HostTask(1));
  EXPECT_FALSE(mode_held_);
}

}  // namespace
}  // namespace keelson
