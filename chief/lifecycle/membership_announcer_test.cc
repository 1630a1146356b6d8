#include "chief/lifecycle/membership_announcer.h"

#include <atomic>
#include <thread>

#include "chief/lifecycle/running_job_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class MembershipAnnouncerTest : public RunningJobTest {
 protected:
  void TearDown() override {
    end_.Raise();
    if (thread_.joinable()) thread_.join();
  }
  void Start() {
    thread_ = std::thread([this] { announcer_.Run(end_); });
  }
  // A worker has the first steps, and its lease has passed.
  void LoseAWorkerAtWork() {
    Join(kWorker0, 1);
    lost_ = *Acquire(kWorker0, 1);
    servers_.Announce(coordinator_.roster()->MemberList(),
                      coordinator_.persistence()->PersistedState());
    ASSERT_TRUE(fakes_[0].members().contains(1) && fakes_[1].members().contains(1));
    clock_.Advance(kLease);
    coordinator_.roster()->ExpireLeases();
  }
  // The next step that is handed out to another worker.
  int64_t NextStep() {
    std::optional<WorkLease> lease;
    while (!lease.has_value()) lease = Acquire(kWorker1, 2);
    return lease->tickets[0].step;
  }

  StopSignal end_;
  std::atomic<int> persisted_{0};
  MembershipAnnouncer announcer_{coordinator_.roster(), coordinator_.persistence(), &servers_,
                                 &clock_, [this] { ++persisted_; }};
  std::thread thread_;
  WorkLease lost_;
};

TEST_F(MembershipAnnouncerTest, WorkIsHandedOnWhenEveryServerKnows) {
  LoseAWorkerAtWork();
  Start();
  fakes_[0].AwaitMembersWithout(1);
  fakes_[1].AwaitMembersWithout(1);
  Join(kWorker1, 2);
  while (NextStep() != lost_.tickets[0].step) {
  }
}

TEST_F(MembershipAnnouncerTest, AServerThatDoesNotAnswerHoldsItBack) {
  LoseAWorkerAtWork();
  fakes_[1].Sever();
  Start();
  fakes_[0].AwaitMembersWithout(1);
  const uint64_t epoch = coordinator_.roster()->MemberList().epoch();
  Join(kWorker1, 2);
  EXPECT_GT(NextStep(), lost_.tickets[0].step);
  announcer_.HandOnTold(epoch - 1);
  EXPECT_GT(NextStep(), lost_.tickets[0].step) << "an older epoch proves nothing";
  end_.Raise();
  thread_.join();
  announcer_.HandOnTold(epoch);
  EXPECT_EQ(NextStep(), lost_.tickets[0].step);
}

TEST_F(MembershipAnnouncerTest, HasUrgentStateStoredAtMostTenTimesASecond) {
  Join(kWorker0, 1);
  ASSERT_TRUE(coordinator_.persistence()->StateUrgent());
  Start();
  while (persisted_ < 1) std::this_thread::yield();
  // Nobody has told the coordinator that it is stored.
  clock_.Advance(absl::Milliseconds(100));
  while (persisted_ < 2) std::this_thread::yield();
  end_.Raise();
  thread_.join();
  EXPECT_EQ(persisted_, 2);
}

}  // namespace
}  // namespace keelson
