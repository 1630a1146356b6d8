#include "chief/lifecycle/training_phase.h"

#include <thread>

#include "chief/lifecycle/running_job_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrainingPhaseTest : public SavedJobTest {
 protected:
  using SavedJobTest::SavedJobTest;
  void TearDown() override {
    stop_.Raise();
    if (thread_.joinable()) thread_.join();
  }
  absl::Status Run() {
    TrainingPhase::Options options;
    options.saves.save_steps = save_steps_;
    options.step_wait = step_wait_;
    return TrainingPhase(options, &coordinator_, &servers_, &snapshots_, &leadership_, &stream_,
                         &phase_clock_, &stop_)
        .Run(clock_.Monotonic());
  }
  void Start() {
    thread_ = std::thread([this] { status_ = Run(); });
  }
  absl::Status Wait() {
    thread_.join();
    return status_;
  }
  int64_t snapshot_step() const { return coordinator_.reports()->GetStatus().snapshot_step; }
  // Time passes until there is a snapshot of this step.
  void AwaitSnapshot(int64_t step) {
    while (snapshot_step() < step) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  }
  // Time passes until the phase has looked at what is there now: it reads the clock at most three
  // times in a look.
  void AwaitLook() {
    const int wanted = phase_clock_.reads() + 6;
    while (phase_clock_.reads() < wanted) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  }
  // The chief has heard that ps-1 was asked to stop.
  void AskServerToLeave() {
    fakes_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(true); });
    ASSERT_EQ(servers_.Confirm(), absl::OkStatus());
  }

  CountingClock phase_clock_{&clock_};
  StreamWatch stream_{nullptr, coordinator_.stream(), &clock_};
  int64_t save_steps_ = 1000;
  absl::Duration step_wait_;
  std::thread thread_;
  absl::Status status_;
};

TEST_F(TrainingPhaseTest, EndsWithTheLastStep) {
  DoAllSteps();
  EXPECT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), IsEmpty()) << "the final snapshot is the ending's";
}

TEST_F(TrainingPhaseTest, WritesTheSnapshotsThatAreDue) {
  save_steps_ = 1;
  Start();
  DoLease();
  while (snapshot_step() < 1) std::this_thread::yield();
  EXPECT_THAT(SnapshotSteps(), ElementsAre(1));
  DoAllSteps();
  EXPECT_EQ(Wait(), absl::OkStatus());
}

TEST_F(TrainingPhaseTest, ASnapshotThatFailsIsTriedAgain) {
  save_steps_ = 1;
  fakes_[0].FailSnapshots(2);
  Start();
  DoLease();
  AwaitSnapshot(1);
  EXPECT_EQ(snapshotter_.figures().failures, 2);
}

TEST_F(TrainingPhaseTest, AServerThatLeavesIsSavedOnce) {
  DoLease();
  AskServerToLeave();
  Start();
  AwaitSnapshot(1);
  std::optional<WorkLease> lease;
  while (!lease.has_value()) lease = Acquire(kWorker0, 1);
  Finish(kWorker0, 1, *lease);
  AwaitLook();
  EXPECT_EQ(fakes_[1].snapshots_asked(), 1);
  DoAllSteps();
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(fakes_[1].snapshots_asked(), 1);
}

TEST_F(TrainingPhaseTest, AServerThatLeavesIsSavedUntilThatSucceeds) {
  DoLease();
  fakes_[0].FailSnapshots(1);
  AskServerToLeave();
  Start();
  AwaitSnapshot(1);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(1));
}

// A job whose shards may be served at both hosts.
class MovingShardsTest : public TrainingPhaseTest {
 protected:
  MovingShardsTest() : TrainingPhaseTest(ConsistencyMode(), /*moving=*/true) {}
};

TEST_F(MovingShardsTest, AServerThatLeavesHandsItsShardOver) {
  DoLease();
  AskServerToLeave();
  Start();
  while (elsewhere_.Count(&ParameterControl::ReplicateShard) == 0) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  std::optional<WorkLease> lease;
  while (!lease.has_value()) lease = Acquire(kWorker0, 1);
  EXPECT_THAT(coordinator_.shards()->NewsFor(0).addresses, ElementsAre("a:1", "a:1"));
  Finish(kWorker0, 1, *lease);
  AwaitLook();
  EXPECT_EQ(fakes_[1].snapshots_asked(), 0);
}

TEST_F(MovingShardsTest, AShardWhoseHostLeavesWhenItMayGoHomeMovesOnce) {
  fakes_[1].Answer(&ParameterControl::ReplicateShard, [this](const auto&, auto* response) {
    fakes_[1].EditStatus([](v1::ShardStatus* shard) {
      shard->set_state(v1::ShardStatus::READY);
      shard->set_store_id(2000);
    });
    *response->mutable_status() = fakes_[1].shard();
    return absl::OkStatus();
  });
  DoLease();
  ASSERT_EQ(servers_.HandOver(1, coordinator_.roster()->MemberList()), absl::OkStatus());
  ASSERT_TRUE(servers_.Settle(1, /*sync_period=*/0, {}).ok());
  ASSERT_TRUE(servers_.MayGoHome(1));
  elsewhere_.EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(true); });
  ASSERT_EQ(servers_.Confirm(), absl::OkStatus());
  Start();
  while (fakes_[1].Count(&ParameterControl::ReplicateShard) == 0) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  AwaitLook();
  EXPECT_THAT(servers_.Addresses(), ElementsAre("a:1", "b:2"));
  EXPECT_EQ(elsewhere_.Count(&ParameterControl::ReplicateShard), 1);
}

// A snapshot may lack the steps under way, which then wait until the process has ended.
TEST_F(MovingShardsTest, AServerThatLeavesWhileItIsLookedWhichOnesDoIsNotSavedInstead) {
  DoLease();
  phase_clock_.CallAt(2, [this] { AskServerToLeave(); });
  Start();
  while (elsewhere_.Count(&ParameterControl::ReplicateShard) == 0) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
    ASSERT_EQ(fakes_[1].snapshots_asked(), 0);
  }
  AwaitLook();
  EXPECT_EQ(fakes_[1].snapshots_asked(), 0);
}

// The job was synchronous until a moment ago.
TEST_F(MovingShardsTest, AReplicaThatGetsNoUpdatesAnyMoreIsCopiedAnew) {
  ASSERT_TRUE(servers_.Settle(1, /*sync_period=*/1, {}).ok());
  ASSERT_TRUE(servers_.HasReplica(1));
  DoLease();
  AskServerToLeave();
  Start();
  while (servers_.Addresses().back() != "a:1") {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(elsewhere_.Count(&ParameterControl::ReplicateShard), 2);
}

// A snapshot that was due anyway has all that it holds, and it takes nothing more.
TEST_F(MovingShardsTest, AServerThatLeavesAndIsSavedHandsItsShardOverToo) {
  fakes_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_asked_to_stop(true); });
  ASSERT_EQ(servers_.Confirm(), absl::OkStatus());
  Start();
  for (int look = 0; look < 5; ++look) AwaitLook();
  EXPECT_EQ(elsewhere_.Count(&ParameterControl::ReplicateShard), 1);
  EXPECT_THAT(servers_.Addresses(), ElementsAre("a:1", "a:1"));
}

// Steps under way need it, so that they end once it has moved.
TEST_F(MovingShardsTest, AShardThatTakesNothingMoreMovesWhileStepsAreUnderWay) {
  const std::optional<WorkLease> lease = Acquire(kWorker0, 1);
  ASSERT_TRUE(lease.has_value());
  step_wait_ = absl::Minutes(1);
  fakes_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_asked_to_stop(true); });
  AskServerToLeave();
  Start();
  while (phase_clock_.reads() == 0) std::this_thread::yield();
  clock_.Advance(absl::Seconds(1));
  // A snapshot has the shard now.
  fakes_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_leaving(false); });
  ASSERT_EQ(servers_.Confirm(), absl::OkStatus());
  clock_.Advance(absl::Seconds(30));
  elsewhere_.AwaitCount(&ParameterControl::ReplicateShard, 1);
  Finish(kWorker0, 1, *lease);
}

TEST_F(MovingShardsTest, AServerWhoseShardCannotMoveIsSaved) {
  elsewhere_.Sever();
  DoLease();
  AskServerToLeave();
  Start();
  AwaitSnapshot(1);
  EXPECT_EQ(fakes_[1].snapshots_asked(), 1);
}

TEST_F(TrainingPhaseTest, ASnapshotThatIsWantedIsWrittenAtOnce) {
  Start();
  DoLease();
  const auto step = coordinator_.wishes()->Save(absl::InfiniteDuration());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, 1);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(1));
  EXPECT_EQ(*coordinator_.wishes()->Save(absl::InfiniteDuration()), 1);
  EXPECT_EQ(fakes_[0].snapshots_asked(), 1) << "it has all steps that are done";
}

TEST_F(TrainingPhaseTest, AWantedSnapshotThatFailsIsNotTriedAgain) {
  fakes_[0].FailSnapshots(1);
  Start();
  DoLease();
  const absl::Status failed = coordinator_.wishes()->Save(absl::InfiniteDuration()).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(failed.message(), HasSubstr("snapshot: "));
  EXPECT_EQ(*coordinator_.wishes()->Save(absl::InfiniteDuration()), 1);
  EXPECT_EQ(snapshotter_.figures().failures, 1);
}

TEST_F(TrainingPhaseTest, AfterTheLastStepNoSnapshotIsWritten) {
  DoAllSteps();
  EXPECT_EQ(coordinator_.wishes()->Save(absl::InfiniteDuration()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Run(), absl::OkStatus());
}

TEST_F(TrainingPhaseTest, WhoeverWantsASnapshotWhenItEndsIsAnswered) {
  absl::Status answer;
  std::thread caller(
      [&] { answer = coordinator_.wishes()->Save(absl::InfiniteDuration()).status(); });
  while (!coordinator_.wishes()->Begin()) std::this_thread::yield();
  stop_.Raise();
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  caller.join();
  EXPECT_EQ(answer.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(answer.message(), HasSubstr("by a signal"));
  EXPECT_EQ(coordinator_.wishes()->Save(absl::InfiniteDuration()).status(), answer);
}

TEST_F(TrainingPhaseTest, AStopTakesASnapshot) {
  DoLease();
  stop_.Raise();
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at step 1"));
  EXPECT_THAT(SnapshotSteps(), ElementsAre(1));
}

TEST_F(TrainingPhaseTest, AChiefThatWasReplacedWritesNothing) {
  DoLease();
  leadership_.NoteReplaced(absl::AbortedError("term 8"));
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fakes_[0].snapshots_asked(), 0);
}

TEST_F(TrainingPhaseTest, ALossThatIsNotFiniteEndsIt) {
  WorkerReport report;
  report.figures.set_non_finite_losses(1);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not finite near step 0"));
  EXPECT_THAT(SnapshotSteps(), IsEmpty());
}

}  // namespace
}  // namespace keelson
