#include "chief/lifecycle/job_start.h"

#include "chief/lifecycle/next_chief_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using JobStartTest = NextChiefTest;

TEST_F(JobStartTest, GoesOnWithTheJobThatTheServersHold) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  EndPredecessor();
  ASSERT_TRUE(start_.Run().ok());
  EXPECT_EQ(next_.reports()->GetStatus().step, 1) << "not that of the snapshot";
  for (int s = 0; s < 2; ++s) {
    next_supervisor_.Visit(s);
    EXPECT_THAT(fakes_[s].initializations(), SizeIs(1)) << "it keeps its shard";
  }
}

TEST_F(JobStartTest, SaysWhenTheNewestSnapshotWasWritten) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const absl::Duration written = clock_.Monotonic();
  clock_.Advance(absl::Hours(1));
  EndPredecessor();
  const auto saved_at = start_.Run();
  ASSERT_TRUE(saved_at.ok()) << saved_at.status();
  EXPECT_EQ(*saved_at, written);
  EXPECT_EQ(next_.reports()->GetStatus().snapshot_step, 0);
}

TEST_F(JobStartTest, AServerWithoutItsShardIsRestoredWhenTheJobGoesOn) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  EndPredecessor();
  fakes_[1].Restart();
  ASSERT_TRUE(start_.Run().ok());
  EXPECT_EQ(next_.reports()->GetStatus().step, 1);
  for (int s = 0; s < 2; ++s) next_supervisor_.Visit(s);
  EXPECT_THAT(fakes_[0].initializations(), SizeIs(1));
  ASSERT_THAT(fakes_[1].initializations(), SizeIs(2));
  EXPECT_EQ(fakes_[1].last_restore(), 0);
}

TEST_F(JobStartTest, StartsOverFromTheSnapshotWhereNoServerHoldsTheJob) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  EndPredecessor();
  for (FakeParameterServer& fake : fakes_) fake.Restart();
  ASSERT_TRUE(start_.Run().ok());
  EXPECT_EQ(next_.reports()->GetStatus().step, 1);
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.last_restore(), 1);
}

TEST_F(JobStartTest, AStateThatContradictsItselfIsNotGoneOnWith) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  EndPredecessor();
  for (FakeParameterServer& fake : fakes_) {
    fake.EditStatus([](v1::ShardStatus* shard) {
      v1::PersistedJobState persisted;
      ASSERT_TRUE(persisted.ParseFromString(shard->job_state()));
      persisted.mutable_job()->set_next_position(-1);
      shard->set_job_state(persisted.SerializeAsString());
    });
  }
  ASSERT_TRUE(start_.Run().ok());
  EXPECT_EQ(next_.reports()->GetStatus().step, 0);
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.last_restore(), 0);
}

// Attempts and epochs of this chief must not be taken for those of its predecessor.
TEST_F(JobStartTest, WhatItNumbersIsNewToTheServers) {
  fakes_[0].EditStatus([](v1::ShardStatus* shard) { shard->set_member_epoch(4'000'000'000'000); });
  EndPredecessor();
  ASSERT_TRUE(start_.Run().ok());
  EXPECT_GT(next_.roster()->epoch(), 4'000'000'000'000u);
}

TEST_F(JobStartTest, AServerThatDoesNotAnswerIsAskedAgain) {
  EndPredecessor();
  fakes_[1].FailNext(&ParameterControl::GetStatus, {absl::UnavailableError("connection reset")});
  const auto started = start_.Run();
  EXPECT_TRUE(started.ok()) << started.status();
}

TEST_F(JobStartTest, AStopEndsTheWaitForAServer) {
  EndPredecessor();
  fakes_[1].Sever();
  stop_.Raise();
  EXPECT_EQ(start_.Run().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace keelson
