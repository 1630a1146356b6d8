#include "chief/coordination/round_queue.h"

#include <optional>
#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class RoundQueueTest : public SyncCoordinatorTest {};

TEST_F(RoundQueueTest, AStepIsARound) {
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker1, 2);
  EXPECT_EQ(first.tickets[0].step, second.tickets[0].step);
  EXPECT_GT(first.attempt, 0u);
  EXPECT_TRUE(chief_->members()->Admit(kWorker0, TestId(1), first.id, 0, first.attempt).value());
  EXPECT_FALSE(chief_->members()->Admit(kWorker0, TestId(1), second.id, 0, first.attempt).value());
  EXPECT_EQ(
      chief_->members()->Admit(kWorker0, TestId(9), first.id, 0, first.attempt).status().code(),
      absl::StatusCode::kAborted);
  Stage(kWorker0, 1, first);
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), std::nullopt);
  std::optional<RoundQueue::Round> round;
  std::thread commits([&] { round = chief_->rounds()->WaitForRound(kLong); });
  Stage(kWorker1, 2, second);
  commits.join();
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(*round, (RoundQueue::Round{0, first.attempt, 2}));
  EXPECT_EQ(step(), 0);
  const v1::JobState state = chief_->persistence()->LedgerState();
  EXPECT_EQ(state.unfinished_size(), 2);
  EXPECT_EQ(state.next_position(), 20);
  chief_->rounds()->RoundCommitted(*round);
  EXPECT_EQ(step(), 1);
  EXPECT_EQ(Acquire(kWorker0, 1)->tickets[0].step, 1);
}

TEST_F(RoundQueueTest, AFailedRoundIsTriedAgain) {
  const WorkLease first = *Acquire(kWorker0, 1);
  Stage(kWorker0, 1, first);
  Stage(kWorker1, 2, *Acquire(kWorker1, 2));
  const auto round = chief_->rounds()->WaitForRound(kNoWait);
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), round) << "until it is reported";
  chief_->rounds()->RoundFailed(*round);
  EXPECT_EQ(chief_->rounds()->WaitForRound(kNoWait), std::nullopt);
  const WorkLease again = *Acquire(kWorker1, 2);
  EXPECT_EQ(again.tickets, first.tickets);
  EXPECT_GT(again.attempt, first.attempt);
}

TEST_F(RoundQueueTest, AWorkerThatDiesDoesNotStallTheStep) {
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const WorkLease old = *Acquire(kWorker1, 2);
  Stage(kWorker1, 2, old);
  clock_.Advance(kLease);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  chief_->roster()->ExpireLeases();
  chief_->roster()->HandOn(chief_->roster()->TakeEnded());
  // Alone, it computes both gradients of the new attempt.
  const WorkLease first = *Acquire(kWorker1, 2);
  const WorkLease second = *Acquire(kWorker1, 2);
  EXPECT_GT(first.attempt, old.attempt);
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  Stage(kWorker1, 2, first);
  Stage(kWorker1, 2, second);
  EXPECT_TRUE(chief_->rounds()->WaitForRound(kNoWait).has_value());
}

TEST_F(RoundQueueTest, TheWaitForARoundEndsWithTimeOrStop) {
  EXPECT_FALSE(chief_->rounds()->WaitForRound(kNoWait).has_value());
  StopSignal stop;
  std::thread stops([&] { stop.Raise(); });
  EXPECT_FALSE(chief_->rounds()->WaitForRound(kLong, &stop).has_value());
  stops.join();
}

TEST_F(RoundQueueTest, ARoundThatAnEarlierChiefCommittedCountsAndItsRecordsComeAgain) {
  const auto first = Acquire(kWorker0, 1);
  ASSERT_TRUE(first.has_value());
  chief_->rounds()->NoteForeignCommit(first->tickets[0].step - 1);
  EXPECT_EQ(step(), 0) << "the round before";
  chief_->rounds()->NoteForeignCommit(first->tickets[0].step);
  EXPECT_EQ(step(), 1);
  const auto next = Acquire(kWorker1, 2);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->tickets[0].step, first->tickets[0].step + 1);
  EXPECT_EQ(next->tickets[0].begin, first->tickets[0].begin);
}

}  // namespace
}  // namespace keelson
