#include "chief/servers/server_supervisor.h"

#include <algorithm>

#include "chief/servers/fake_parameter_server.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Thread-safe.
class FakeJob {
 public:
  ServerSupervisor::Job AsSupervised() {
    ServerSupervisor::Job job = {[this] { return PersistedState(); },
                                 [this] { return Members(); },
                                 [this] { return Members().epoch(); },
                                 [this](uint64_t version) { NoteStored(version); },
                                 [this] { return Snapshots(); },
                                 [this](const absl::Status& status) { NoteReplaced(status); }};
    job.confirm = [this] { return Confirm(); };
    job.note_committed = [this](int64_t round) { NoteCommitted(round); };
    return job;
  }
  v1::PersistedJobState PersistedState() {
    MutexLock lock(&mu_);
    ++states_made_;
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(version_);
    persisted.mutable_job()->set_global_step(step_);
    return persisted;
  }
  v1::MemberList Members() {
    MutexLock lock(&mu_);
    v1::MemberList members;
    members.set_epoch(epoch_);
    for (uint64_t i = 0; i < epoch_; ++i) members.add_members()->set_incarnation(7 + i);
    return members;
  }
  void NoteStored(uint64_t version) {
    MutexLock lock(&mu_);
    stored_ = version;
  }
  absl::StatusOr<std::vector<SnapshotInfo>> Snapshots() {
    MutexLock lock(&mu_);
    return snapshots_;
  }
  void NoteReplaced(const absl::Status& status) {
    MutexLock lock(&mu_);
    replaced_ = status;
  }
  void NoteCommitted(int64_t round) {
    MutexLock lock(&mu_);
    committed_ = std::max(committed_, round);
  }

  absl::Status Confirm() {
    MutexLock lock(&mu_);
    return confirmed_;
  }

  void SetConfirmed(const absl::Status& confirmed) {
    MutexLock lock(&mu_);
    confirmed_ = confirmed;
  }
  void SetEpoch(uint64_t epoch) {
    MutexLock lock(&mu_);
    epoch_ = epoch;
  }
  void SetStep(int64_t step) {
    MutexLock lock(&mu_);
    step_ = step;
  }
  void SetVersion(uint64_t version) {
    MutexLock lock(&mu_);
    version_ = version;
  }
  void SetSnapshots(absl::StatusOr<std::vector<SnapshotInfo>> snapshots) {
    MutexLock lock(&mu_);
    snapshots_ = std::move(snapshots);
  }
  uint64_t stored() const {
    MutexLock lock(&mu_);
    return stored_;
  }
  // The newest round that was noted.
  int64_t committed() const {
    MutexLock lock(&mu_);
    return committed_;
  }
  int states_made() const {
    MutexLock lock(&mu_);
    return states_made_;
  }
  absl::Status replaced() const {
    MutexLock lock(&mu_);
    return replaced_;
  }

 private:
  mutable Mutex mu_;
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 2;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 412;
  uint64_t stored_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t committed_ ABSL_GUARDED_BY(mu_) = -1;
  int states_made_ ABSL_GUARDED_BY(mu_) = 0;
  absl::StatusOr<std::vector<SnapshotInfo>> snapshots_ ABSL_GUARDED_BY(mu_) =
      std::vector<SnapshotInfo>{{300, "newest", {}}, {200, "older", {}}};
  absl::Status replaced_ ABSL_GUARDED_BY(mu_);
  absl::Status confirmed_ ABSL_GUARDED_BY(mu_);
};

class ServerSupervisorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
    ASSERT_EQ(group_.Initialize(std::nullopt, {}), absl::OkStatus());
  }
  static ServerGroup::Options GroupOptions() {
    ServerGroup::Options options;
    options.config_hash = FakeParameterServer::kConfigHash;
    return options;
  }
  std::string LogOfVisit(size_t s) {
    testing::internal::CaptureStderr();
    supervisor_.Visit(s);
    return testing::internal::GetCapturedStderr();
  }

  const ServerSupervisor::Pauses pauses_{};
  ManualClock clock_;
  StopSignal stop_;
  FakeJob job_;
  FakeParameterServer servers_[2];
  ServerStorage storage_;
  ServerGroup group_{GroupOptions(),
                     {{"ps-0", "a:1", &servers_[0]}, {"ps-1", "b:2", &servers_[1]}},
                     &storage_,
                     &clock_,
                     &stop_};
  ServerSupervisor supervisor_{&group_, job_.AsSupervised(), &clock_, pauses_};
};

TEST_F(ServerSupervisorTest, LeavesTheStateOnceASecond) {
  EXPECT_EQ(supervisor_.Visit(0), pauses_.visit);
  EXPECT_EQ(servers_[0].states(), 1);
  EXPECT_EQ(job_.stored(), 0u) << "the other one does not have it yet";
  supervisor_.Visit(1);
  EXPECT_EQ(job_.stored(), 1u);
  job_.SetVersion(2);
  clock_.Advance(absl::Milliseconds(999));
  supervisor_.Visit(0);
  EXPECT_EQ(servers_[0].states(), 1);
  clock_.Advance(absl::Milliseconds(1));
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  EXPECT_EQ(servers_[0].shard().job_state_version(), 2u);
  EXPECT_EQ(job_.stored(), 2u);
}

TEST_F(ServerSupervisorTest, TheStateIsMadeOnceForAllServers) {
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  EXPECT_EQ(job_.states_made(), 1);
  supervisor_.PersistNow();
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  EXPECT_EQ(servers_[1].states(), 2);
  EXPECT_EQ(job_.states_made(), 2);
  clock_.Advance(pauses_.visit);
  supervisor_.Visit(0);
  EXPECT_EQ(job_.states_made(), 2) << "nothing is due";
}

// A chief that was replaced wakes up, and finds a restarted server first.
TEST_F(ServerSupervisorTest, AShardThatAnotherChiefMadeIsRestored) {
  supervisor_.Visit(0);
  ASSERT_EQ(servers_[0].initializations().size(), 1u);
  servers_[0].Restart();
  v1::InitializeShardResponse response;
  ASSERT_EQ(servers_[0].Initialize({}, &response), absl::OkStatus());
  EXPECT_THAT(LogOfVisit(0), HasSubstr("ps-0 has been restarted and restored from newest"));
  ASSERT_EQ(servers_[0].initializations().size(), 3u);
  EXPECT_EQ(servers_[0].last_restore(), 300);
  supervisor_.Visit(0);
  EXPECT_EQ(servers_[0].initializations().size(), 3u);
}

// One that was frozen is the first to call a server that was restarted meanwhile.
TEST_F(ServerSupervisorTest, AChiefThatWasReplacedMakesNoShard) {
  servers_[0].Restart();
  job_.SetConfirmed(absl::AlreadyExistsError("taken over by another chief"));
  EXPECT_EQ(supervisor_.Visit(0), pauses_.restore);
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
}

TEST_F(ServerSupervisorTest, AShardIsMadeThoughTheStorageDoesNotSayWhoLeads) {
  servers_[0].Restart();
  job_.SetConfirmed(absl::PermissionDeniedError("read-only file system"));
  supervisor_.Visit(0);
  EXPECT_EQ(servers_[0].initializations().size(), 2u);
}

TEST_F(ServerSupervisorTest, PersistNowStoresTheStateAtOnce) {
  supervisor_.Visit(0);
  supervisor_.PersistNow();
  supervisor_.Visit(0);
  EXPECT_EQ(servers_[0].states(), 2);
  supervisor_.Visit(0);
  EXPECT_EQ(servers_[0].states(), 2);
}

TEST_F(ServerSupervisorTest, TheMembersGoToWhoDoesNotKnowThem) {
  supervisor_.Visit(0);
  EXPECT_THAT(servers_[0].members(), ElementsAre(7, 8));
  supervisor_.Visit(0);
  EXPECT_FALSE(servers_[0].last_heartbeat().has_members());
  EXPECT_EQ(servers_[0].states(), 1);
  job_.SetEpoch(3);
  job_.SetVersion(2);
  supervisor_.Visit(0);
  EXPECT_THAT(servers_[0].members(), ElementsAre(7, 8, 9));
  EXPECT_EQ(servers_[0].shard().job_state_version(), 2u) << "with the state that knows them";
  // Whoever was restarted, or had another chief, has another epoch.
  servers_[0].Restart();
  supervisor_.Visit(0);
  EXPECT_THAT(servers_[0].members(), ElementsAre(7, 8, 9));
}

TEST_F(ServerSupervisorTest, StopCancelsARestoreThatHangs) {
  servers_[1].Answer(&ParameterControl::Initialize, [this](const auto&, auto*) {
    servers_[1].file_calls_end().Wait();
    return absl::CancelledError();
  });
  servers_[1].Restart();
  supervisor_.Start();
  servers_[1].AwaitInitializations(2);
  supervisor_.Stop();
  EXPECT_EQ(servers_[1].shard().state(), v1::ShardStatus::EMPTY);
}

TEST_F(ServerSupervisorTest, ARestartedServerThatWasSavedLosesNothing) {
  supervisor_.Visit(1);
  job_.SetStep(300);
  servers_[1].Restart();
  EXPECT_THAT(LogOfVisit(1), HasSubstr("restored from newest: lost no step of its shard"));
}

TEST_F(ServerSupervisorTest, ARestartedServerIsRestoredAndOnlyThat) {
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  servers_[1].Restart();
  clock_.Advance(absl::Milliseconds(2340));
  EXPECT_THAT(LogOfVisit(1),
              AllOf(HasSubstr("ps-1 has been restarted and restored from newest"),
                    HasSubstr("lost steps 300 to 412 of its shard"), HasSubstr("away for 2.34s")));
  const auto requests = servers_[1].initializations();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].restore_step(), 300);
  EXPECT_EQ(requests[1].shard(), 1u);
  EXPECT_EQ(requests[1].members().members_size(), 2);
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  EXPECT_EQ(servers_[1].initializations().size(), 2u);
}

TEST_F(ServerSupervisorTest, ADamagedSnapshotIsPassedOver) {
  servers_[1].Restart();
  servers_[1].Damage(300);
  EXPECT_THAT(LogOfVisit(1), AllOf(HasSubstr("step 300: bad checksum"), HasSubstr("from older")));
  EXPECT_EQ(servers_[1].last_restore(), 200);
  EXPECT_THAT(group_.Missing(), IsEmpty());
}

TEST_F(ServerSupervisorTest, WithoutAUsableSnapshotItIsTriedAgain) {
  servers_[1].Restart();
  servers_[1].Damage(300);
  servers_[1].Damage(200);
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervisor_.Visit(1), pauses_.restore);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("restoring ps-1: none of 2 snapshots can be used: step 300: bad checksum"));
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-1 at b:2"));
  EXPECT_EQ(LogOfVisit(1), "") << "said once per interval";
  job_.SetSnapshots(std::vector<SnapshotInfo>{{400, "newer", {}}});
  EXPECT_EQ(supervisor_.Visit(1), pauses_.visit);
  EXPECT_EQ(servers_[1].last_restore(), 400);
  EXPECT_THAT(group_.Missing(), IsEmpty());
}

TEST_F(ServerSupervisorTest, ADirectoryThatCannotBeReadIsNoReasonForInitialValues) {
  servers_[1].Restart();
  job_.SetSnapshots(absl::UnavailableError("cannot list"));
  EXPECT_EQ(supervisor_.Visit(1), pauses_.restore);
  EXPECT_EQ(servers_[1].initializations().size(), 1u);
  job_.SetSnapshots(std::vector<SnapshotInfo>{});
  EXPECT_EQ(supervisor_.Visit(1), pauses_.restore);
  EXPECT_EQ(servers_[1].initializations().size(), 1u) << "the job is at step 412";
  job_.SetStep(0);
  EXPECT_EQ(supervisor_.Visit(1), pauses_.visit);
  EXPECT_EQ(servers_[1].last_restore(), std::nullopt) << "there never was one";
}

TEST_F(ServerSupervisorTest, AFileThatAServerDoesNotFindIsWaitedFor) {
  servers_[1].Restart();
  servers_[1].FailNext(&ParameterControl::Initialize,
                       {absl::NotFoundError("newest.index"), absl::NotFoundError("newest.index"),
                        absl::NotFoundError("newest.index")});
  EXPECT_EQ(supervisor_.Visit(1), pauses_.restore);
  clock_.Advance(pauses_.missing - absl::Seconds(1));
  EXPECT_EQ(supervisor_.Visit(1), pauses_.restore);
  EXPECT_EQ(servers_[1].last_restore(), 300) << "no older one was tried";
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(LogOfVisit(1), AllOf(HasSubstr("newest.index"), HasSubstr("from older")));
  EXPECT_EQ(servers_[1].last_restore(), 200);
}

TEST_F(ServerSupervisorTest, AServerThatIsAwayIsAskedOftenAndLoggedOnce) {
  supervisor_.Visit(0);
  servers_[0].Sever();
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervisor_.Visit(0), pauses_.away);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("lost ps-0: severed by the test"));
  EXPECT_EQ(LogOfVisit(0), "");
  EXPECT_THAT(group_.Missing(), ElementsAre("ps-0 at a:1"));
  servers_[0].Restore();
  EXPECT_THAT(LogOfVisit(0), HasSubstr("ps-0 is back"));
  EXPECT_THAT(group_.Missing(), IsEmpty());
  EXPECT_EQ(servers_[0].states(), 2) << "with the newest job state";
}

// Another process has another state of the shard, with a round that this job has not committed.
TEST_F(ServerSupervisorTest, RoundsOfAForeignShardAreNotTheJobs) {
  servers_[0].EditStatus([](v1::ShardStatus* shard) { shard->set_committed_round(3); });
  supervisor_.Visit(0);
  EXPECT_EQ(job_.committed(), 3);
  servers_[0].EditStatus([](v1::ShardStatus* shard) {
    shard->set_store_id(shard->store_id() + 1);
    shard->set_committed_round(4);
  });
  supervisor_.Visit(0);
  EXPECT_EQ(job_.committed(), 3);
}

TEST_F(ServerSupervisorTest, AServerWithAForeignShardIsRestoredFirst) {
  supervisor_.RestoreFirst(1);
  supervisor_.Visit(0);
  supervisor_.Visit(1);
  supervisor_.Visit(1);
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  EXPECT_EQ(servers_[1].initializations().size(), 2u);
  EXPECT_EQ(servers_[1].last_restore(), 300);
}

TEST_F(ServerSupervisorTest, TheJobIsToldOfAnotherChief) {
  servers_[0].Replace();
  supervisor_.Visit(0);
  EXPECT_EQ(job_.replaced().code(), absl::StatusCode::kAborted);
}

TEST_F(ServerSupervisorTest, AServerThatIsBeingRestoredDelaysNoOther) {
  supervisor_.Start();
  servers_[0].Block(&ParameterControl::Initialize, true);
  servers_[0].Restart();
  servers_[0].AwaitInitializations(2);
  servers_[1].Restart();
  servers_[1].AwaitInitializations(2);
  const int probes = servers_[1].probes();
  supervisor_.PersistNow();
  servers_[1].AwaitProbes(probes + 1);
  servers_[0].Block(&ParameterControl::Initialize, false);
  supervisor_.Stop();
  EXPECT_EQ(servers_[0].shard().state(), v1::ShardStatus::READY);
}

}  // namespace
}  // namespace keelson
