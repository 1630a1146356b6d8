#include "chief/lifecycle/job_ending.h"

#include <atomic>
#include <thread>

#include "chief/lifecycle/running_job_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// All steps are done.
class JobEndingTest : public SavedJobTest {
 protected:
  void SetUp() override {
    SavedJobTest::SetUp();
    DoAllSteps();
    options_.config_hash = kHash;
    options_.leave_wait = absl::ZeroDuration();
    options_.retry = RetryPause(absl::Milliseconds(1), absl::Milliseconds(1));
  }
  void TearDown() override {
    stop_.Raise();
    if (thread_.joinable()) thread_.join();
  }
  absl::Status Run() {
    return JobEnding(options_, &directory_, &coordinator_, &servers_, &supervisor_, &snapshotter_,
                     &snapshots_, &leadership_, &ending_clock_, &stop_)
        .Run(before_);
  }
  void Start() {
    thread_ = std::thread([this] {
      status_ = Run();
      ended_ = true;
    });
  }
  absl::Status Wait() {
    thread_.join();
    return status_;
  }
  void AwaitPhase(JobPhase phase) {
    while (coordinator_.control()->phase() != phase) std::this_thread::yield();
  }
  // Time passes, up to `latest`, until the clock was read again. False: it has ended.
  bool AwaitRead(absl::Duration latest) {
    const int read = ending_clock_.reads();
    while (ending_clock_.reads() == read && !ended_) {
      if (clock_.Monotonic() < latest) clock_.Advance(absl::Milliseconds(100));
      std::this_thread::yield();
    }
    return !ended_;
  }
  bool done() {
    const auto marker = directory_.ReadDoneMarker();
    EXPECT_TRUE(marker.ok()) << marker.status();
    return marker->has_value();
  }

  CountingClock ending_clock_{&clock_};
  JobEnding::Options options_;
  std::optional<DoneMarker> before_;
  ServerSupervisor supervisor_{&servers_, {}, &clock_, {}};
  std::thread thread_;
  absl::Status status_;
  std::atomic<bool> ended_{false};
};

TEST_F(JobEndingTest, WritesTheLastSnapshotAndTheMarkerAndTellsTheServers) {
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(10));
  const auto marker = directory_.ReadDoneMarker();
  ASSERT_TRUE(marker.ok() && marker->has_value());
  EXPECT_EQ((*marker)->step, 10);
  EXPECT_EQ((*marker)->config_hash, kHash);
  EXPECT_EQ(coordinator_.control()->phase(), JobPhase::kDone);
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.finished(), 1);
}

TEST_F(JobEndingTest, ALastSnapshotThatIsThereIsNotWrittenAgain) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(fakes_[0].snapshots_asked(), 1);
  EXPECT_TRUE(done());
}

TEST_F(JobEndingTest, ALastSnapshotThatFailsIsTriedAgain) {
  fakes_[0].FailSnapshots(3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(10));
  EXPECT_EQ(snapshotter_.figures().failures, 3);
}

TEST_F(JobEndingTest, AStopSaysWhatCouldNotBeWritten) {
  fakes_[0].FailSnapshots(1'000'000);
  Start();
  while (snapshotter_.figures().failures < 2) std::this_thread::yield();
  stop_.Raise();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: no space left"));
  EXPECT_THAT(SnapshotSteps(), IsEmpty());
  EXPECT_FALSE(done());
  EXPECT_EQ(fakes_[0].finished(), 0);
}

TEST_F(JobEndingTest, AnEvaluationOfTheLastSnapshotIsAllThatItWaitsFor) {
  options_.expects_evaluator = true;
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const auto newest = snapshotter_.FindNewest();
  ASSERT_TRUE(newest.ok() && newest->has_value()) << newest.status();
  coordinator_.evaluations()->AcknowledgeEvaluation(10, (*newest)->state.snapshot_id(), {});
  EXPECT_EQ(Run(), absl::OkStatus()) << "the clock stands";
  EXPECT_TRUE(done());
}

TEST_F(JobEndingTest, AnEvaluatorThatNeverComesIsWaitedForHalfAMinute) {
  options_.expects_evaluator = true;
  Start();
  AwaitPhase(JobPhase::kEvaluating);
  while (ending_clock_.reads() == 0) std::this_thread::yield();
  const absl::Duration start = clock_.Monotonic();
  clock_.Advance(absl::Seconds(25));
  // It reads the clock once a second, and goes on after the first of these reads.
  ASSERT_TRUE(AwaitRead(start + absl::Seconds(27)));
  ASSERT_TRUE(AwaitRead(start + absl::Seconds(29)));
  while (!ended_) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_TRUE(done());
}

TEST_F(JobEndingTest, OfAJobThatWasDoneBeforeNoEvaluationIsWaitedFor) {
  options_.expects_evaluator = true;
  before_ = DoneMarker{10, kHash};
  EXPECT_EQ(Run(), absl::OkStatus()) << "the clock stands";
  EXPECT_TRUE(done());
}

TEST_F(JobEndingTest, OfAJobThatHasGoneOnTheEvaluationIsWaitedFor) {
  options_.expects_evaluator = true;
  before_ = DoneMarker{9, kHash};
  Start();
  AwaitPhase(JobPhase::kEvaluating);
  while (ending_clock_.reads() == 0) std::this_thread::yield();
  stop_.Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(JobEndingTest, AStopEndsTheWaitForTheEvaluator) {
  options_.expects_evaluator = true;
  Start();
  AwaitPhase(JobPhase::kEvaluating);
  stop_.Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(done()) << "a restarted chief waits for it";
}

TEST_F(JobEndingTest, AChiefThatLostItsDirectoryDoesNotMarkIt) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  leadership_.NoteReplaced(absl::AbortedError("term 8"));
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(done());
}

}  // namespace
}  // namespace keelson
