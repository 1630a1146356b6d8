// Calls of members that hold a thread while they wait.
#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "chief/coordination/member_requests.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

class BlockingRequestsTest : public CoordinatorTest {};

TEST_F(BlockingRequestsTest, ModelIsKnownOnceTrainingStarts) {
  EXPECT_EQ(coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait).status().code(),
            absl::StatusCode::kAborted);
  Register(kWorker0, 1);
  EXPECT_EQ(coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  StartTraining(10);
  const auto model = coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->ps_addresses, ElementsAre("ps-0:1"));
}

TEST_F(BlockingRequestsTest, FailureEndsTheWaitForTheModel) {
  Register(kWorker0, 1);
  std::thread fails([&] { coordinator_.control()->Fail(absl::DataLossError("ps-1 is away")); });
  const absl::Status status =
      coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kLong).status();
  fails.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1 is away"));
}

TEST_F(BlockingRequestsTest, NoWorkBeforeTraining) {
  Register(kWorker0, 1);
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
}

TEST_F(BlockingRequestsTest, TwoWorkersDoExactlyMaxSteps) {
  StartTraining(37);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  std::set<int64_t> steps;
  WorkerReport reports[2];
  for (int turn = 0; coordinator_.reports()->GetStatus().step < 37; turn = 1 - turn) {
    const Task task = {Role::kWorker, turn};
    const auto lease = Acquire(task, static_cast<uint64_t>(turn) + 1, reports[turn]);
    reports[turn] = {};
    if (!lease.has_value()) continue;
    for (const WorkTicket& ticket : lease->tickets) EXPECT_TRUE(steps.insert(ticket.step).second);
    const auto size = static_cast<int64_t>(lease->tickets.size());
    reports[turn] = Completed(lease->id, size, size);
    clock_.Advance(absl::Milliseconds(10));
  }
  EXPECT_EQ(steps.size(), 37u);
  EXPECT_EQ(*steps.rbegin(), 36);
  EXPECT_EQ(coordinator_.reports()->GetStatus().totals.steps(), 37);
}

TEST_F(BlockingRequestsTest, LeasesGrowToTheWorkersPaceAndShrinkAtTheEnd) {
  StartTraining(400);
  Register(kWorker0, 1);
  std::vector<size_t> sizes;
  WorkerReport report;
  while (const auto lease = Acquire(kWorker0, 1, report)) {
    sizes.push_back(lease->tickets.size());
    // 100 steps a second.
    clock_.Advance(absl::Milliseconds(10) * static_cast<double>(lease->tickets.size()));
    report = Completed(lease->id, static_cast<int64_t>(lease->tickets.size()));
  }
  ASSERT_GT(sizes.size(), 7u);
  EXPECT_THAT(std::vector<size_t>(sizes.begin(), sizes.begin() + 6),
              ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(*std::max_element(sizes.begin(), sizes.end()), AllOf(Ge(49u), Le(50u)));
  EXPECT_EQ(sizes.back(), 1u);
}

TEST_F(BlockingRequestsTest, AWaitingWorkerGetsTheWorkOfALostOneAtOnce) {
  StartTraining(1);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  clock_.Advance(kLease / 2);
  Register(kWorker1, 2);
  std::optional<WorkLease> taken;
  std::thread waits([&] { taken = Acquire(kWorker1, 2, {}, kLong); });
  // Its own waiting keeps the second worker alive.
  clock_.Advance(kLease / 2);
  coordinator_.roster()->ExpireLeases();
  coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  waits.join();
  EXPECT_TRUE(taken.has_value());
}

TEST_F(BlockingRequestsTest, ARepeatedRequestGetsTheSameLeaseAndCountsOnce) {
  StartTraining(10);
  Register(kWorker0, 1);
  const auto first = Acquire(kWorker0, 1, {}, kNoWait, 1);
  const WorkerReport report = Completed(first->id, 1, 1);
  const auto second = Acquire(kWorker0, 1, report, kNoWait, 2);
  const auto again = Acquire(kWorker0, 1, report, kNoWait, 2);
  ASSERT_TRUE(second.has_value() && again.has_value());
  EXPECT_EQ(again->id, second->id);
  EXPECT_EQ(again->tickets, second->tickets);
  EXPECT_EQ(coordinator_.reports()->GetStatus().totals.steps(), 1);
  EXPECT_EQ(coordinator_.reports()->GetStatus().step, 1);
}

TEST_F(BlockingRequestsTest, AnOvertakenRequestGetsNothing) {
  StartTraining(10);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1, {}, kNoWait, 2).has_value());
  EXPECT_FALSE(Acquire(kWorker0, 1, {}, kNoWait, 1).has_value());
}

TEST_F(BlockingRequestsTest, AWaitForWorkEndsWithTheMembership) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  absl::Status waited;
  std::atomic<bool> ended{false};
  std::thread waits([&] {
    waited = coordinator_.requests()
                 ->AcquireWork(kWorker1, TestId(2), {}, absl::InfiniteDuration(), 1)
                 .status();
    ended = true;
  });
  // Again while the waiting itself has kept its worker alive. The other one keeps the only step.
  while (!ended) {
    for (int half = 0; half < 2; ++half) {
      clock_.Advance(kLease / 2);
      EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), {}), absl::OkStatus());
    }
    coordinator_.roster()->ExcuseSteps();
    coordinator_.roster()->ExpireLeases();
  }
  waits.join();
  EXPECT_EQ(waited.code(), absl::StatusCode::kAborted);
}

TEST_F(BlockingRequestsTest, FailureEndsTheWaitForWork) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  std::thread fails([&] { coordinator_.control()->Fail(absl::InternalError("disk full")); });
  EXPECT_FALSE(Acquire(kWorker1, 2, {}, kLong).has_value());
  fails.join();
  EXPECT_EQ(coordinator_.reports()->GetStatus().error, "disk full");
  EXPECT_EQ(coordinator_.control()->phase(), JobPhase::kFailed);
}

}  // namespace
}  // namespace keelson
