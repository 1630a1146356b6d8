#include "chief/coordination/training_start.h"

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class TrainingStartTest : public SuccessionTest {};

class SyncTrainingStartTest : public SyncCoordinatorTest {};

TEST_F(TrainingStartTest, WorkersGoOnWhereTheyWere) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease first = AcquireSome(kWorker0, 1, 2);
  const WorkLease second = AcquireSome(kWorker1, 2, 2);
  const int64_t before = step();
  Succeed(chief_->persistence()->PersistedState());
  EXPECT_EQ(step(), before);
  EXPECT_EQ(chief_->control()->phase(), JobPhase::kTraining);
  EXPECT_EQ(chief_->members()->Heartbeat(kWorker0, TestId(1), {}).code(),
            absl::StatusCode::kAborted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1)}).value(), ElementsAre(first.id));
  EXPECT_EQ(step(), before + 1);
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value()) << "the other is not back";
  EXPECT_THAT(Register(kWorker1, 2, {Held(second, 0)}).value(), ElementsAre(second.id));
  const auto next = Acquire(kWorker0, 1, Completed(first.id, 2));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->tickets[0].step, second.tickets.back().step + 1);
  EXPECT_EQ(step(), before + 2);
}

TEST_F(TrainingStartTest, WhatWasGrantedAfterTheStateIsTakenOn) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  const WorkLease first = *Acquire(kWorker0, 1);
  const WorkLease second = *Acquire(kWorker0, 1, Completed(first.id, 1));
  ASSERT_EQ(step(), 1);
  Succeed(persisted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1), Held(second, 1)}).value(),
              UnorderedElementsAre(first.id, second.id));
  EXPECT_EQ(step(), 2);
}

TEST_F(TrainingStartTest, AStepOfAWorkerThatIsNotBackMayBeUnderWay) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  const WorkLease lease = *Acquire(kWorker0, 1);
  Succeed(persisted);
  EXPECT_FALSE(chief_->control()->PauseWork(kNoWait)) << "servers may have its pushes";
  ASSERT_TRUE(Register(kWorker0, 1, {Held(lease, 0)}).ok());
  EXPECT_FALSE(chief_->control()->PauseWork(kNoWait));
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker0, TestId(1), Completed(lease.id, 1)),
            absl::OkStatus());
  EXPECT_TRUE(chief_->control()->PauseWork(kNoWait));
}

TEST_F(TrainingStartTest, WhoDoesNotComeBackIsLostAndFenced) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);
  Succeed(chief_->persistence()->PersistedState());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  clock_.Advance(kLease / 2);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  EXPECT_FALSE(Acquire(kWorker1, 2).has_value());
  clock_.Advance(kLease / 2);
  chief_->roster()->ExpireLeases();
  EXPECT_NE(Acquire(kWorker1, 2)->tickets, lost.tickets);
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  chief_->roster()->HandOn({1});
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lost.tickets[0]);
  EXPECT_EQ(Register(kWorker0, 1, {Held(lost, 1)}).status().code(), absl::StatusCode::kAborted);
}

TEST_F(TrainingStartTest, AnEvaluatorIsNotWaitedFor) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kEvaluator, 2).ok());
  Succeed(chief_->persistence()->PersistedState());
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_TRUE(Acquire(kWorker0, 1).has_value());
  EXPECT_FALSE(chief_->roster()->WaitUntilAlone(kNoWait));
}

TEST_F(TrainingStartTest, WorkOfTheRetiredIsFencedAgain) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  clock_.Advance(kLease);
  chief_->roster()->ExpireLeases();
  ASSERT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  // The chief crashes before the servers are told.
  Succeed(chief_->persistence()->PersistedState());
  EXPECT_THAT(chief_->roster()->MemberList().members(), IsEmpty());
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  EXPECT_NE(Acquire(kWorker1, 2)->tickets, lease.tickets);
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  chief_->roster()->HandOn({1});
  EXPECT_EQ(Acquire(kWorker1, 2)->tickets[0], lease.tickets[0]);
}

TEST_F(TrainingStartTest, ALaterLeaseOnTheSameWorkEndsTheOlderHolder) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  // Afterwards the predecessor retires worker-0's membership, and hands its work on.
  clock_.Advance(kLease);
  ASSERT_EQ(chief_->members()->Heartbeat(kWorker1, TestId(2), {}), absl::OkStatus());
  chief_->roster()->ExpireLeases();
  chief_->roster()->HandOn(chief_->roster()->TakeEnded());
  const WorkLease taken = *Acquire(kWorker1, 2);
  ASSERT_EQ(taken.tickets, lost.tickets);
  Succeed(persisted);
  EXPECT_THAT(Register(kWorker1, 2, {Held(taken, 0)}).value(), ElementsAre(taken.id));
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  EXPECT_EQ(Register(kWorker0, 1, {Held(lost, 1)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(step(), 0);
}

TEST_F(TrainingStartTest, AClaimWaitsUntilItIsKnownHowTheJobGoesOn) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(),
            absl::StatusCode::kUnavailable);
  Resume(persisted);
  EXPECT_THAT(Register(kWorker0, 1, {Held(lease, 1)}).value(), ElementsAre(lease.id));
}

TEST_F(TrainingStartTest, WhoRegistersEarlyHoldsNothing) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);  // the answer never arrives
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  EXPECT_EQ(Register(kWorker0, 1).status().code(), absl::StatusCode::kUnavailable);
  told_.clear();  // it never got its model
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  Resume(persisted);
  EXPECT_EQ(Acquire(kWorker0, 1)->tickets, lost.tickets);
}

TEST_F(TrainingStartTest, AJobThatStartsOverKnowsNoOldLeases) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  NewChief();
  StartTraining();
  // Its sequences are forgotten, so it comes back as somebody else.
  EXPECT_EQ(Register(kWorker0, 1, {Held(lease, 1)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Register(kWorker0, 2).ok());
  EXPECT_EQ(step(), 0);
}

TEST_F(TrainingStartTest, AMemberThatTheStateDoesNotKnowIsTakenOn) {
  StartTraining();
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lease = *Acquire(kWorker0, 1);
  Succeed(persisted);
  EXPECT_THAT(chief_->roster()->MemberList().members(), IsEmpty());
  EXPECT_GT(chief_->roster()->MemberList().epoch(), told_[1]);
  EXPECT_THAT(Register(kWorker0, 1, {Held(lease, 1)}).value(), ElementsAre(lease.id));
  EXPECT_EQ(chief_->roster()->MemberList().members_size(), 1);
}

TEST_F(TrainingStartTest, WhoHoldsWorkThatOthersWereGivenIsNoMember) {
  StartTraining();
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  const WorkLease lost = *Acquire(kWorker0, 1);
  Succeed(persisted);
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  ASSERT_EQ(Acquire(kWorker1, 2)->tickets, lost.tickets);
  // Its push of that work may be under way, and must not be applied.
  EXPECT_EQ(Register(kWorker0, 1, {Held(lost, 0)}).status().code(), absl::StatusCode::kAborted);
  ASSERT_EQ(chief_->roster()->MemberList().members_size(), 1);
  EXPECT_EQ(chief_->roster()->MemberList().members(0).incarnation(), 2u);
  EXPECT_TRUE(Register(kWorker0, 3).ok());
}

TEST_F(SyncTrainingStartTest, ASuccessorBeginsANewAttempt) {
  const WorkLease first = *Acquire(kWorker0, 1);
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  NewChief();
  chief_->start()->RaiseAttempt(first.attempt + 7);
  chief_->start()->NoteCommittedRounds(3);
  Resume(persisted);
  EXPECT_EQ(step(), 4);
  EXPECT_EQ(chief_->control()->mode().ToString(), "sync:2");
  EXPECT_THAT(Register(kWorker0, 1, {Held(first, 1)}).value(), IsEmpty());
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  const WorkLease again = *Acquire(kWorker0, 1);
  EXPECT_GT(again.attempt, first.attempt + 8);
  EXPECT_EQ(again.tickets[0], (WorkTicket{4, 0, 80, 90}));
}

TEST_F(SyncTrainingStartTest, AttemptsThatNobodyHasHeardOfDoNotComeAgain) {
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  WorkLease newest = *Acquire(kWorker0, 1);
  for (int i = 0; i < 3; ++i) {
    Stage(kWorker0, 1, newest);
    Stage(kWorker1, 2, *Acquire(kWorker1, 2));
    chief_->rounds()->RoundFailed(*chief_->rounds()->WaitForRound(kNoWait));
    newest = *Acquire(kWorker0, 1);
  }
  Succeed(persisted);
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  EXPECT_GT(Acquire(kWorker0, 1)->attempt, newest.attempt);
}

TEST_F(SyncTrainingStartTest, AttemptsOfALaterChiefAreGreater) {
  const WorkLease first = *Acquire(kWorker0, 1);
  clock_.Advance(absl::Seconds(2));
  NewChief();
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 3).ok());
  EXPECT_GT(Acquire(kWorker0, 3)->attempt, first.attempt);
}

TEST_F(TrainingStartTest, TheModeOutlivesTheChiefButNotTheConfiguration) {
  StartTraining();
  ASSERT_EQ(chief_->control()->SetMode(ConsistencyMode::Parse("ssp:3").value()), absl::OkStatus());
  v1::JobState state = chief_->persistence()->LedgerState();
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "ssp:3");
  state.set_config_hash(kHash + 1);
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "async");
  // A mode that makes no sense is not taken on.
  state.set_config_hash(kHash);
  state.mutable_mode()->mutable_bounded_staleness()->set_staleness(-1);
  NewChief();
  chief_->start()->StartTraining({}, WorkLedger::FromState(state, Work(1)).value());
  EXPECT_EQ(chief_->control()->mode().ToString(), "async");
}

}  // namespace
}  // namespace keelson
