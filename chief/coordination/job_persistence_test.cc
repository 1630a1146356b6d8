#include "chief/coordination/job_persistence.h"

#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

class JobPersistenceTest : public SuccessionTest {};

class JobStateTest : public CoordinatorTest {};

TEST_F(JobPersistenceTest, StateTellsWhatASuccessorNeeds) {
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  ASSERT_TRUE(Register(kWorker1, 2).ok());
  ASSERT_EQ(chief_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  chief_->evaluations()->SetSnapshotStep(5);
  chief_->evaluations()->AcknowledgeEvaluation(4, 0, {});
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  EXPECT_EQ(persisted.job().config_hash(), kHash);
  EXPECT_EQ(persisted.job().job_id(), 77u);
  EXPECT_EQ(persisted.job().state_version(), chief_->persistence()->versions().current);
  EXPECT_TRUE(persisted.job().mode().has_async());
  ASSERT_EQ(persisted.members_size(), 1);
  EXPECT_EQ(persisted.members(0).incarnation(), 1u);
  EXPECT_EQ(persisted.members(0).membership_secret(), TestId(1).secret);
  EXPECT_EQ(persisted.members(0).peer(), "host:1");
  EXPECT_EQ(persisted.leases_size(), 1);
  EXPECT_EQ(persisted.member_epoch(), chief_->roster()->MemberList().epoch());
  EXPECT_GT(persisted.attempt(), 0u);
  EXPECT_FALSE(persisted.mode_pending());
  Succeed(persisted);
  EXPECT_EQ(chief_->reports()->GetStatus().snapshot_step, 5);
  EXPECT_EQ(chief_->reports()->GetStatus().evaluated_step, 4);
  EXPECT_GT(chief_->persistence()->versions().current, persisted.job().state_version());
}

TEST_F(JobPersistenceTest, BeforeTrainingThereIsNoState) {
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_EQ(chief_->persistence()->PersistedState().ByteSizeLong(), 0u);
  EXPECT_FALSE(chief_->persistence()->StateUrgent());
  EXPECT_EQ(chief_->persistence()->versions().current, 0u);
}

TEST_F(JobPersistenceTest, WhatIsUrgentIsWaitedFor) {
  constexpr absl::Duration kAtOnce = -absl::InfiniteDuration();
  StopSignal stop;
  StartTraining();
  chief_->persistence()->WaitForUrgent(kAtOnce, stop);
  const absl::Duration again = clock_.Monotonic() + absl::Seconds(1);
  std::thread moves([&] { clock_.Advance(absl::Seconds(1)); });
  chief_->persistence()->WaitForUrgent(again, stop);
  moves.join();
  EXPECT_GE(clock_.Monotonic(), again);
  chief_->persistence()->NoteStored(chief_->persistence()->PersistedState().job().state_version());
  std::thread joins([&] { EXPECT_TRUE(Register(kWorker0, 1).ok()); });
  chief_->persistence()->WaitForUrgent(kAtOnce, stop);
  joins.join();
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  std::thread leaves(
      [&] { EXPECT_EQ(chief_->members()->Leave(kWorker0, TestId(1), {}), absl::OkStatus()); });
  chief_->persistence()->WaitForUrgent(absl::InfiniteDuration(), stop);
  leaves.join();
  EXPECT_THAT(chief_->roster()->TakeEnded(), ElementsAre(1u));
  std::thread stops([&] { stop.Raise(); });
  chief_->persistence()->WaitForUrgent(absl::InfiniteDuration(), stop);
  stops.join();
}

TEST_F(JobPersistenceTest, AJoinIsStoredAtOnce) {
  StartTraining();
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  chief_->persistence()->NoteStored(chief_->persistence()->PersistedState().job().state_version());
  EXPECT_FALSE(chief_->persistence()->StateUrgent());
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  const v1::PersistedJobState persisted = chief_->persistence()->PersistedState();
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  chief_->persistence()->NoteStored(persisted.job().state_version());
  EXPECT_FALSE(chief_->persistence()->StateUrgent()) << "work alone is not urgent";
  EXPECT_EQ(chief_->persistence()->versions().stored, persisted.job().state_version());
  EXPECT_GT(chief_->persistence()->versions().current, chief_->persistence()->versions().stored);
  chief_->persistence()->NoteStored(1);
  EXPECT_EQ(chief_->persistence()->versions().stored, persisted.job().state_version());
}

TEST_F(JobStateTest, LedgerStateCountsLeasedWorkAsUnfinished) {
  StartTraining(10);
  Register(kWorker0, 1);
  ASSERT_TRUE(Acquire(kWorker0, 1).has_value());
  const v1::JobState state = coordinator_.persistence()->LedgerState();
  EXPECT_EQ(state.global_step(), 0);
  EXPECT_EQ(state.config_hash(), kHash);
  ASSERT_EQ(state.unfinished_size(), 1);
  EXPECT_EQ(state.unfinished(0).end(), 10);
  EXPECT_EQ(state.next_position(), 10);
}

}  // namespace
}  // namespace keelson
