// Which calls of the coordinator wake which waiting ones. The clock stands, so a call that is not
// woken waits for ever.
#include <atomic>
#include <optional>
#include <thread>

#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

// Stands still, and counts how often somebody begins to wait, or goes on to wait.
class CountingClock : public ManualClock {
 public:
  void WaitUntil(Mutex* mutex, CondVar* changed, absl::Duration until) const override {
    ++waits_;
    ManualClock::WaitUntil(mutex, changed, until);
  }
  int waits() const { return waits_; }
  // The coordinator's lock is held from the count to the wait: its calls come after that.
  void AwaitWaits(int number) const {
    while (waits_ < number) std::this_thread::yield();
  }

 private:
  mutable std::atomic<int> waits_ = 0;
};

class CoordinatorWaitsTest : public testing::Test {
 protected:
  // A job of `steps` steps with two workers, of which the first has incarnation 1.
  void StartTraining(const char* mode, int64_t steps) {
    Coordinator::Options options;
    options.config_hash = kHash;
    options.lease = kLease;
    options.mode = ConsistencyMode::Parse(mode).value();
    options.max_tickets_per_lease = 1;
    coordinator_.emplace(options, &clock_);
    WorkOptions work;
    work.max_steps = steps;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_->start()->StartTraining({}, WorkLedger(work));
    ASSERT_TRUE(coordinator_->members()->Register(kWorker0, TestId(1), kHash, "host:1").ok());
    ASSERT_TRUE(coordinator_->members()->Register(kWorker1, TestId(2), kHash, "host:2").ok());
  }
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation,
                                   absl::Duration max_wait = kNoWait, uint64_t sequence = 0) {
    const auto lease =
        coordinator_->requests()->AcquireWork(task, TestId(incarnation), {}, max_wait, sequence);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  void Report(Task task, uint64_t incarnation, const WorkerReport& report) {
    EXPECT_EQ(coordinator_->members()->Heartbeat(task, TestId(incarnation), report),
              absl::OkStatus());
  }

  CountingClock clock_;
  std::optional<Coordinator> coordinator_;
  StopSignal stop_;
};

TEST_F(CoordinatorWaitsTest, AHeartbeatWakesNobody) {
  StartTraining("async", 1);
  const WorkLease only = *Acquire(kWorker0, 1);
  std::thread worker([&] { Acquire(kWorker1, 2, kLong); });
  std::thread chief(
      [&] { coordinator_->control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_); });
  clock_.AwaitWaits(2);
  for (int beat = 0; beat < 10'000; ++beat) Report(kWorker0, 1, {});
  EXPECT_EQ(clock_.waits(), 2);
  Report(kWorker0, 1, Completed(only.id, 1));
  chief.join();
  coordinator_->control()->SetPhase(JobPhase::kEvaluating);
  worker.join();
}

TEST_F(CoordinatorWaitsTest, AGradientOfARoundWakesNoWorkerThatWaitsForTheNext) {
  StartTraining("sync:2", 10);
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker1, 2);
  Report(kWorker0, 1, Completed(first.id, 1));
  std::optional<WorkLease> next;
  std::thread worker([&] { next = Acquire(kWorker0, 1, kLong); });
  clock_.AwaitWaits(1);
  for (int beat = 0; beat < 10'000; ++beat) Report(kWorker1, 2, Completed(second.id, 0));
  Report(kWorker1, 2, Completed(second.id, 1));
  const auto round = coordinator_->rounds()->WaitForRound(kNoWait);
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(clock_.waits(), 1);
  coordinator_->rounds()->RoundCommitted(*round);
  worker.join();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->tickets[0].step, 1);
}

TEST_F(CoordinatorWaitsTest, ARefusedGradientWakesTheWorkersOfTheRound) {
  StartTraining("sync:2", 10);
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker1, 2);
  Report(kWorker0, 1, Completed(first.id, 1));
  std::optional<WorkLease> again;
  std::thread worker([&] { again = Acquire(kWorker0, 1, kLong); });
  clock_.AwaitWaits(1);
  WorkerReport refused;
  refused.refused = {{second.id, 0, second.attempt}};
  Report(kWorker1, 2, refused);
  worker.join();
  ASSERT_TRUE(again.has_value());
  EXPECT_GT(again->attempt, first.attempt);
}

TEST_F(CoordinatorWaitsTest, AReportOfTheSlowestFreesWhoeverIsAtTheBound) {
  StartTraining("ssp:1", 10);
  const WorkLease slow = *Acquire(kWorker0, 1);
  while (const auto lease = Acquire(kWorker1, 2)) Report(kWorker1, 2, Completed(lease->id, 1));
  std::optional<WorkLease> next;
  std::thread worker([&] { next = Acquire(kWorker1, 2, kLong); });
  clock_.AwaitWaits(1);
  Report(kWorker0, 1, Completed(slow.id, 1));
  worker.join();
  EXPECT_TRUE(next.has_value());
}

TEST_F(CoordinatorWaitsTest, ANewRequestEndsTheOneThatWaits) {
  StartTraining("async", 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  std::optional<WorkLease> waited = WorkLease();
  std::thread worker([&] { waited = Acquire(kWorker1, 2, kLong, 1); });
  clock_.AwaitWaits(1);
  EXPECT_FALSE(Acquire(kWorker1, 2, kNoWait, 2).has_value());
  worker.join();
  EXPECT_FALSE(waited.has_value());
}

TEST_F(CoordinatorWaitsTest, TheLastStepUnderWayEndsThePause) {
  StartTraining("async", 10);
  const WorkLease lease = *Acquire(kWorker0, 1);
  bool idle = false;
  std::thread chief([&] { idle = coordinator_->control()->PauseWork(kLong); });
  clock_.AwaitWaits(1);
  Report(kWorker0, 1, Completed(lease.id, 1));
  chief.join();
  EXPECT_TRUE(idle);
}

TEST_F(CoordinatorWaitsTest, ALossThatIsNotFiniteEndsTheWaitForSteps) {
  StartTraining("async", 10);
  const WorkLease lease = *Acquire(kWorker0, 1);
  std::thread chief(
      [&] { coordinator_->control()->WaitForSteps(10, clock_.Monotonic() + kLong, stop_); });
  clock_.AwaitWaits(1);
  WorkerReport report;
  report.figures.set_non_finite_losses(1);
  Report(kWorker0, 1, report);
  chief.join();
  EXPECT_EQ(coordinator_->reports()->GetStatus().totals.non_finite_losses(), 1);
}

}  // namespace
}  // namespace keelson
