#include "chief/lifecycle/lease_watch.h"

#include "chief/lifecycle/running_job_testing.h"

namespace keelson {
namespace {

class LeaseWatchTest : public RunningJobTest {
 protected:
  // Time passes for the job and for the process, which looks ten times a second.
  void Pass(absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(100)) {
      process_clock_.Advance(absl::Milliseconds(100));
      clock_.Advance(absl::Milliseconds(100));
      watch_.Look();
    }
  }
  // The process is frozen; nothing is looked at.
  void StandStill(absl::Duration time) {
    process_clock_.Advance(time);
    clock_.Advance(time);
    watch_.Look();
  }

  ManualClock process_clock_;
  LeaseWatch watch_{
      {kLease, absl::Seconds(100)}, coordinator_.roster(), &servers_, &process_clock_, &stop_};
};

TEST_F(LeaseWatchTest, EndsAMembershipWhoseLeaseHasPassed) {
  Join(kWorker0, 1);
  watch_.Look();
  Pass(kLease - absl::Seconds(1));
  EXPECT_TRUE(coordinator_.roster()->AnyAlive(Role::kWorker));
  Pass(absl::Seconds(1));
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

TEST_F(LeaseWatchTest, ExtendsLeasesByTheTimeThatTheProcessStoodStill) {
  Join(kWorker0, 1);
  watch_.Look();
  StandStill(absl::Hours(1));
  EXPECT_TRUE(coordinator_.roster()->AnyAlive(Role::kWorker)) << "nobody could reach this process";
  Pass(kLease);
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

TEST_F(LeaseWatchTest, TheFirstLookKnowsOfNoGap) {
  Join(kWorker0, 1);
  StandStill(kLease);
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

TEST_F(LeaseWatchTest, CancelsCallsAboutFilesWhenTheTimeToLeaveHasPassed) {
  watch_.Look();
  Pass(absl::Seconds(200));
  stop_.Raise();
  watch_.Look();
  Pass(absl::Seconds(99));
  EXPECT_FALSE(fakes_[1].file_calls_end().raised());
  Pass(absl::Seconds(1));
  EXPECT_TRUE(fakes_[1].file_calls_end().raised());
}

TEST_F(LeaseWatchTest, LooksAtLeastOnce) {
  Join(kWorker0, 1);
  clock_.Advance(kLease);
  StopSignal end;
  end.Raise();
  watch_.Run(end);
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

}  // namespace
}  // namespace keelson
