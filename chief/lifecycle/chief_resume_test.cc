// Chief::Run when servers and members of a predecessor are there: adoption, lost members, rounds,
// another chief.
#include <iterator>
#include <set>

#include "chief/lifecycle/chief_run_testing.h"
#include "core/base/file.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<int64_t> StepsOf(const v1::AcquireWorkResponse& lease) {
  std::vector<int64_t> steps;
  for (const v1::StepTicket& ticket : lease.tickets()) steps.push_back(ticket.step());
  return steps;
}

TEST_F(ChiefRunTest, ARestartedChiefAdoptsTheRunningCluster) {
  Start();
  Join(service(), kWorker);
  const v1::AcquireWorkResponse done = AwaitWork(service());
  const v1::AcquireWorkResponse held = Acquire(service(), Done(done));
  ASSERT_THAT(held.tickets(), SizeIs(Gt(0)));
  const int64_t step = StatusOf(service()).step();
  AwaitStored();
  Kill();

  Start();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(StatusOf(service()).step(), step);
  EXPECT_THAT(Join(service(), kWorker, {held}).kept_leases(), ElementsAre(held.lease_id()));
  const v1::AcquireWorkResponse next = AwaitWork(service());
  ASSERT_THAT(next.tickets(), SizeIs(Gt(0)));
  EXPECT_THAT(StepsOf(next), Each(Gt(StepsOf(held).back()))) << "no ticket twice";
  for (int s = 0; s < 2; ++s) EXPECT_EQ(servers_[s].initializations().size(), 1u);
  Report(service(), Done(held));
  Report(service(), Done(next));
  Work(service());
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10)) << "none is repeated";
}

TEST_F(ChiefRunTest, AServerThatWasRestartedWithTheChiefIsRestored) {
  Start();
  Join(service(), kWorker);
  const v1::AcquireWorkResponse held = AwaitWork(service());
  AwaitStored();
  Kill();
  servers_[1].Restart();
  Start();
  const auto requests = servers_[1].AwaitInitializations(2);
  EXPECT_TRUE(requests[1].has_restore_step());
  EXPECT_EQ(requests[1].restore_step(), 0);
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  Join(service(), kWorker, {held});
  Report(service(), Done(held));
  Work(service());
  Leave(service(), kWorker);
  EXPECT_EQ(Wait(), absl::OkStatus());
}

// A chief is restarted while ps-1 is away, for longer than servers may take to appear.
class MissingServerTest : public ChiefRunTest {
 protected:
  // The predecessor's worker holds a lease, which this returns.
  v1::AcquireWorkResponse RestartWithoutServer(
      absl::Duration startup_timeout = absl::Milliseconds(1)) {
    Start();
    Join(service(), kWorker);
    Report(service(), Done(AwaitWork(service())));
    const v1::AcquireWorkResponse held = AwaitWork(service());
    EXPECT_THAT(held.tickets(), SizeIs(Gt(0)));
    AwaitStored();
    Kill();
    servers_[1].Sever();
    options_.startup_timeout = startup_timeout;
    Start();
    const int probes = servers_[1].probes();
    while (!ended_ && servers_[1].probes() < probes + 5) std::this_thread::yield();
    EXPECT_FALSE(ended_);
    return held;
  }
  // The job comes to its end with the worker that held this lease.
  void Complete(const v1::AcquireWorkResponse& held) {
    AwaitPhase(service(), v1::TRAINING);
    EXPECT_THAT(Join(service(), kWorker, {held}).kept_leases(), ElementsAre(held.lease_id()));
    Report(service(), Done(held));
    const v1::AcquireWorkResponse next = AwaitWork(service());
    ASSERT_THAT(next.tickets(), SizeIs(Gt(0)));
    EXPECT_THAT(StepsOf(next), Each(Gt(StepsOf(held).back()))) << "no ticket twice";
    Report(service(), Done(next));
    Work(service());
    Leave(service(), kWorker);
    ASSERT_EQ(Wait(), absl::OkStatus());
    EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10));
  }
};

TEST_F(MissingServerTest, IsAdoptedWhenItIsBackWithItsShard) {
  const v1::AcquireWorkResponse held = RestartWithoutServer();
  ASSERT_FALSE(ended_) << Wait();
  servers_[1].Restore();
  Complete(held);
  EXPECT_EQ(servers_[0].initializations().size(), 1u) << "it keeps its shard";
  EXPECT_EQ(servers_[1].initializations().size(), 1u);
}

TEST_F(MissingServerTest, IsRestoredWhenItIsBackEmpty) {
  const v1::AcquireWorkResponse held = RestartWithoutServer();
  ASSERT_FALSE(ended_) << Wait();
  servers_[1].Restart();
  servers_[1].Restore();
  Complete(held);
  EXPECT_EQ(servers_[0].initializations().size(), 1u) << "it keeps its shard";
  ASSERT_THAT(servers_[1].initializations(), SizeIs(2));
  EXPECT_EQ(servers_[1].initializations()[1].restore_step(), 0);
}

// What ps-0 had answered before is not what it holds when the decision is made.
TEST_F(MissingServerTest, AnotherServerThatIsRestartedMeanwhileIsRestored) {
  const v1::AcquireWorkResponse held = RestartWithoutServer(absl::Minutes(10));
  ASSERT_FALSE(ended_) << Wait();
  servers_[0].Restart();
  servers_[1].Restore();
  Complete(held);
  ASSERT_THAT(servers_[0].initializations(), SizeIs(2));
  EXPECT_EQ(servers_[0].initializations()[1].restore_step(), 0);
  EXPECT_EQ(servers_[1].initializations().size(), 1u) << "it keeps its shard";
}

TEST_F(MissingServerTest, MembersOfItsJobAreNotDecidedAboutMeanwhile) {
  const v1::AcquireWorkResponse held = RestartWithoutServer();
  ASSERT_FALSE(ended_) << Wait();
  EXPECT_EQ(StatusOf(service()).phase(), v1::WAITING_FOR_SERVERS);
  v1::RegisterRequest request;
  *request.mutable_header() = HeaderOf(kWorker);
  request.set_config_hash(FakeParameterServer::kConfigHash);
  request.add_leases()->set_lease_id(held.lease_id());
  v1::RegisterResponse response;
  EXPECT_EQ(service()->Register(request, &response).code(), absl::StatusCode::kUnavailable);
  servers_[1].Restore();
  Complete(held);
}

TEST_F(MissingServerTest, EndsTheWaitWhenTheOthersHoldNoShardEither) {
  servers_[1].Sever();
  options_.startup_timeout = absl::Milliseconds(1);
  Start();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ChiefRunTest, AnEmptyDirectoryGivesNoServerInitialValues) {
  options_.config.mutable_checkpoint()->clear_save_seconds();
  options_.config.mutable_checkpoint()->set_save_steps(1);
  const std::string model_dir = options_.config.checkpoint().model_dir();
  options_.supervision.restore = absl::Milliseconds(10);
  Start();
  Join(service(), kWorker);
  Report(service(), Done(AwaitWork(service())));
  while (SnapshotSteps().size() < 2) std::this_thread::yield();
  AwaitStored();
  Kill();
  // The next chief's machine does not see the directory.
  ASSERT_EQ(RenameFile(model_dir, model_dir + ".away"), absl::OkStatus());
  servers_[1].Restart();
  Start();
  AwaitPhase(service(), v1::TRAINING);
  const int probes = servers_[1].probes();
  servers_[1].AwaitProbes(probes + 3);
  EXPECT_EQ(servers_[1].initializations().size(), 1u) << "that of the start";
  ASSERT_EQ(RenameFile(model_dir, model_dir + ".empty"), absl::OkStatus());
  ASSERT_EQ(RenameFile(model_dir + ".away", model_dir), absl::OkStatus());
  EXPECT_GT(servers_[1].AwaitInitializations(2)[1].restore_step(), 0);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefRunTest, AnotherNumberOfServersStartsOver) {
  Start();
  Join(service(), kWorker);
  Report(service(), Done(AwaitWork(service())));
  AwaitStored();
  Kill();
  ++options_.incarnation;
  auto chief = Chief::Create(options_, {{"ps-0", "a:1", &servers_[0]}}, Clock::Real(), stop_.get());
  ASSERT_TRUE(chief.ok()) << chief.status();
  chief_ = *std::move(chief);
  thread_ = std::thread([this] { status_ = chief_->Run(); });
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(StatusOf(service()).step(), 0);
  EXPECT_EQ(LastRestore(0), 0);
  const uint64_t old_version = servers_[1].shard().job_state_version();
  EXPECT_GT(chief_->coordinator()->persistence()->PersistedState().job().state_version(),
            old_version)
      << "servers would ignore it";
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefRunTest, AStateThatContradictsItselfStartsOver) {
  Start();
  Join(service(), kWorker);
  Report(service(), Done(AwaitWork(service())));
  AwaitStored();
  Kill();
  for (FakeParameterServer& server : servers_) {
    server.EditStatus([](v1::ShardStatus* shard) {
      v1::PersistedJobState persisted;
      ASSERT_TRUE(persisted.ParseFromString(shard->job_state()));
      persisted.mutable_job()->set_next_position(-1);
      shard->set_job_state(persisted.SerializeAsString());
    });
  }
  Start();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(StatusOf(service()).step(), 0);
  EXPECT_EQ(LastRestore(1), 0);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

// A second worker joins, takes work and completes it until it has had so many steps.
std::set<int64_t> StepsOfAnother(ChiefService* chief, int64_t wanted) {
  v1::RegisterRequest request;
  *request.mutable_header() = HeaderOf({Role::kWorker, 1});
  request.mutable_header()->set_incarnation(555);
  request.set_config_hash(FakeParameterServer::kConfigHash);
  v1::RegisterResponse response;
  EXPECT_EQ(chief->Register(request, &response), absl::OkStatus());
  std::set<int64_t> steps;
  v1::AcquireWorkRequest acquire;
  *acquire.mutable_header() = request.header();
  while (std::ssize(steps) < wanted) {
    v1::AcquireWorkResponse lease;
    EXPECT_EQ(chief->AcquireWork(acquire, &lease), absl::OkStatus());
    *acquire.mutable_progress() = Done(lease);
    for (const int64_t step : StepsOf(lease)) steps.insert(step);
  }
  return steps;
}

class LostWorkerTest : public ChiefRunTest {
 protected:
  // A worker has work, and the servers know that it belongs to the job.
  void StartWithAWorkerAtWork() {
    options_.lease = absl::Seconds(10);
    Start(&clock_);
    Join(service(), kWorker);
    EXPECT_EQ(AwaitWork(service()).tickets(0).step(), 0);
    while (!servers_[1].members().contains(worker_)) std::this_thread::yield();
  }

  const uint64_t worker_ = HeaderOf(kWorker).incarnation();
};

TEST_F(LostWorkerTest, IsRefusedByTheServersBeforeOthersGetItsWork) {
  StartWithAWorkerAtWork();
  while (servers_[1].members().contains(worker_)) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  servers_[0].AwaitMembersWithout(worker_);
  servers_[1].AwaitMembersWithout(worker_);
  EXPECT_THAT(StepsOfAnother(service(), 10), Contains(0));
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(LostWorkerTest, WorkWaitsForAServerThatOnlyTheChiefCannotReach) {
  StartWithAWorkerAtWork();
  servers_[1].Sever();
  while (servers_[0].members().contains(worker_)) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  ASSERT_TRUE(servers_[1].members().contains(worker_)) << "it takes the lost worker's pushes";
  // The chief has had time to give up telling it.
  servers_[1].AwaitProbes(servers_[1].probes() + 5);
  EXPECT_THAT(StepsOfAnother(service(), 9), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  servers_[1].Restore();
  EXPECT_THAT(StepsOfAnother(service(), 1), ElementsAre(0));
  EXPECT_FALSE(servers_[1].members().contains(worker_));
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

// Synchronous mode with one worker.
class SynchronousChiefTest : public ChiefRunTest {
 protected:
  void SetUp() override {
    ChiefRunTest::SetUp();
    options_.config.mutable_consistency()
        ->mutable_mode()
        ->mutable_synchronous()
        ->set_replicas_to_aggregate(1);
  }
  // The first step is done.
  void StartAndStep() {
    Start();
    Join(service(), kWorker);
    Report(service(), Done(AwaitWork(service())));
    while (StatusOf(service()).step() < 1) std::this_thread::yield();
  }
  // Starts the next chief as if the one that was killed had committed round 1 at one server only.
  // Returns what the next chief commits at the other one.
  std::vector<v1::CommitRoundRequest> StartAfterHalfACommit() {
    servers_[0].EditStatus([](v1::ShardStatus* shard) { shard->set_committed_round(1); });
    servers_[1].EditStatus([](v1::ShardStatus* shard) {
      shard->set_open_round(1);
      shard->set_open_attempt(2'000'000'000);
    });
    const size_t before = servers_[1].commits().size();
    Start();
    AwaitPhase(service(), v1::TRAINING);
    std::vector<v1::CommitRoundRequest> commits = servers_[1].commits();
    commits.erase(commits.begin(), commits.begin() + static_cast<std::ptrdiff_t>(before));
    return commits;
  }
};

TEST_F(SynchronousChiefTest, SynchronousRoundsAreCommittedByTheChief) {
  Start();
  Join(service(), kWorker);
  // The first round is asked for before it is committed, as any after a snapshot. That fails as
  // after a restart of the servers, and the round is done again.
  for (FakeParameterServer& server : servers_) {
    server.FailCommits({absl::FailedPreconditionError("0 of 1 pushes")});
  }
  Work(service());
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  for (const FakeParameterServer& server : servers_) {
    const std::vector<v1::CommitRoundRequest> commits = server.commits();
    ASSERT_THAT(commits, SizeIs(12));
    EXPECT_TRUE(commits[0].only_ask());
    EXPECT_TRUE(commits[1].only_ask());
    EXPECT_GT(commits[1].attempt(), commits[0].attempt());
    EXPECT_EQ(commits[2].round(), 0);
    EXPECT_FALSE(commits[2].only_ask());
    EXPECT_EQ(commits[11].round(), 9);
    EXPECT_EQ(commits[11].contributions(), 1u);
  }
}

TEST_F(SynchronousChiefTest, AServerThatMissedACommitIsToldByTheNextChief) {
  StartAndStep();
  AwaitStored();
  Kill();
  // The job state is that of the step before.
  const std::vector<v1::CommitRoundRequest> commits = StartAfterHalfACommit();
  ASSERT_THAT(commits, SizeIs(1));
  EXPECT_EQ(commits.back().round(), 1);
  EXPECT_EQ(commits.back().attempt(), 2'000'000'000u);
  EXPECT_EQ(StatusOf(service()).step(), 2);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(SynchronousChiefTest, ACommitIsCompletedWithThePushesThatItHadThoughTheModeChanges) {
  StartAndStep();
  AwaitWork(service());  // the change waits for this step
  v1::SetModeRequest request;
  request.mutable_mode()->mutable_async();
  v1::SetModeResponse response;
  ASSERT_EQ(service()->SetMode(request, &response), absl::OkStatus());
  Kill();
  const std::vector<v1::CommitRoundRequest> commits = StartAfterHalfACommit();
  ASSERT_THAT(commits, SizeIs(1));
  EXPECT_EQ(commits.back().round(), 1);
  EXPECT_EQ(commits.back().contributions(), 1u);
  EXPECT_FALSE(commits.back().lost());
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefRunTest, AReplacedChiefEndsWithoutHarm) {
  Start();
  Join(service(), kWorker);
  Report(service(), Done(AwaitWork(service())));
  const int asked = servers_[0].snapshots_asked();
  servers_[1].Replace();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another chief has taken this one's place"));
  EXPECT_EQ(servers_[0].snapshots_asked(), asked);
  EXPECT_NE(StatusOf(service()).phase(), v1::FAILED) << "the members are the other chief's";
}

}  // namespace
}  // namespace keelson
