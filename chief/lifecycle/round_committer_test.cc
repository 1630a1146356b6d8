#include "chief/lifecycle/round_committer.h"

#include <thread>

#include "chief/lifecycle/running_job_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::SizeIs;

// Synchronous mode with one worker, whose pushes of the first round are at the servers.
class RoundCommitterTest : public RunningJobTest {
 protected:
  RoundCommitterTest() : RunningJobTest(*ConsistencyMode::Parse("sync:1")) {}

  void SetUp() override {
    RunningJobTest::SetUp();
    Join(kWorker0, 1);
    Finish(kWorker0, 1, *Acquire(kWorker0, 1));
  }
  void TearDown() override {
    end_.Raise();
    if (thread_.joinable()) thread_.join();
  }
  void Start() {
    thread_ = std::thread([this] { committer_.Run(end_); });
  }
  void AwaitStep(int64_t wanted) {
    coordinator_.control()->WaitForSteps(wanted, absl::InfiniteDuration(), end_);
    EXPECT_EQ(step(), wanted);
  }

  StopSignal end_;
  RoundCommitter committer_{coordinator_.rounds(), &servers_, &leadership_, &clock_};
  std::thread thread_;
};

TEST_F(RoundCommitterTest, AStepCountsAndEveryServerCommitsIt) {
  EXPECT_EQ(step(), 0);
  Start();
  AwaitStep(1);
  for (const FakeParameterServer& fake : fakes_) {
    while (fake.commits().empty()) std::this_thread::yield();
  }
  for (const FakeParameterServer& fake : fakes_) {
    ASSERT_THAT(fake.commits(), SizeIs(1));
    EXPECT_EQ(fake.commits()[0].round(), 0);
    EXPECT_EQ(fake.commits()[0].contributions(), 1u);
  }
}

TEST_F(RoundCommitterTest, ARoundThatNoServerHasIsComputedAgain) {
  for (FakeParameterServer& fake : fakes_) {
    fake.FailCommits({absl::FailedPreconditionError("0 of 1 pushes")});
  }
  Start();
  std::optional<WorkLease> again;
  while (!again.has_value()) again = Acquire(kWorker0, 1);
  EXPECT_EQ(again->tickets[0].step, 0);
  EXPECT_EQ(step(), 0);
  Finish(kWorker0, 1, *again);
  AwaitStep(1);
}

// The step counts by then, and is not handed out again.
TEST_F(RoundCommitterTest, ARoundThatHasBegunIsBroughtToItsEnd) {
  fakes_[1].FailCommits({absl::InternalError("no memory"), absl::InternalError("no memory")});
  Start();
  AwaitStep(1);
  while (fakes_[1].commits().size() < 3) std::this_thread::yield();
  EXPECT_EQ(fakes_[1].commits().back().round(), 0);
  EXPECT_EQ(step(), 1);
}

TEST_F(RoundCommitterTest, AServerThatObeysAnotherChiefEndsIt) {
  fakes_[1].FailCommits({absl::AbortedError("term 8")});
  committer_.Run(end_);
  EXPECT_TRUE(stop_.raised());
  EXPECT_TRUE(absl::IsAlreadyExists(leadership_.Check())) << leadership_.Check();
}

TEST_F(RoundCommitterTest, EndsWithoutARound) {
  Start();
  AwaitStep(1);
  end_.Raise();
  thread_.join();
  EXPECT_FALSE(stop_.raised());
}

}  // namespace
}  // namespace keelson
