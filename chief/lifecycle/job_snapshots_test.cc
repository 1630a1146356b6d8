#include "chief/lifecycle/job_snapshots.h"

#include "chief/lifecycle/running_job_testing.h"
#include "core/base/file.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using JobSnapshotsTest = SavedJobTest;

TEST_F(JobSnapshotsTest, ASnapshotHasTheLedgersStateWhichTheServersHold) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(1));
  EXPECT_EQ(coordinator_.reports()->GetStatus().snapshot_step, 1);
  for (const FakeParameterServer& fake : fakes_) EXPECT_GT(fake.shard().job_state_version(), 0u);
}

TEST_F(JobSnapshotsTest, ItsEvaluationsAreTheJobs) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const auto newest = snapshotter_.FindNewest();
  ASSERT_TRUE(newest.ok() && newest->has_value()) << newest.status();
  const uint64_t id = (*newest)->state.snapshot_id();
  coordinator_.evaluations()->AcknowledgeEvaluation(1, id + 1, {});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, -1)
      << "another snapshot of that step";
  coordinator_.evaluations()->AcknowledgeEvaluation(1, id, {});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 1);
}

// As for a chief that took the running job up while the model directory was away.
TEST_F(JobSnapshotsTest, OneThatIsInSightAgainIsTheJobsAndStays) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const uint64_t id = (*snapshotter_.FindNewest())->state.snapshot_id();
  Snapshotter next(&directory_, &servers_, RetentionPolicy{5, 0}, &clock_);
  JobSnapshots snapshots(&directory_, &next, &servers_, &coordinator_, &leadership_);
  // A try of this chief that failed.
  coordinator_.evaluations()->NameSnapshot(1, id + 1);
  ASSERT_EQ(snapshots.Write(), absl::OkStatus());
  EXPECT_EQ((*next.FindNewest())->state.snapshot_id(), id);
  coordinator_.evaluations()->AcknowledgeEvaluation(1, id, {});
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 1);
}

TEST_F(JobSnapshotsTest, AServerThatObeysAnotherChiefPreventsItAndEndsTheLeadership) {
  DoLease();
  fakes_[1].Replace();
  EXPECT_EQ(snapshots_.Write().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(SnapshotSteps(), IsEmpty());
  EXPECT_EQ(coordinator_.reports()->GetStatus().snapshot_step, 0);
  EXPECT_TRUE(absl::IsAlreadyExists(leadership_.Check())) << leadership_.Check();
  EXPECT_TRUE(stop_.raised());
}

TEST_F(JobSnapshotsTest, AFailureLeavesTheNewestSnapshot) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  fakes_[0].FailSnapshots(1);
  EXPECT_FALSE(snapshots_.Write().ok());
  EXPECT_EQ(coordinator_.reports()->GetStatus().snapshot_step, 1);
  EXPECT_EQ(snapshotter_.figures().failures, 1);
  EXPECT_EQ(leadership_.Check(), absl::OkStatus());
}

TEST_F(JobSnapshotsTest, APausedOneHasTheStepsUnderWayAndNothingIsHandedOut) {
  const WorkLease lease = *Acquire(kWorker0, 1);
  ASSERT_EQ(snapshots_.WritePaused(absl::ZeroDuration()), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0)) << "it waited for no time";
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  Finish(kWorker0, 1, lease);
  ASSERT_EQ(snapshots_.WritePaused(absl::Hours(1)), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 1));
  coordinator_.control()->ResumeWork();
  EXPECT_TRUE(Acquire(kWorker0, 1).has_value());
}

// The snapshot of that step lacks what servers may have of the one under way, so that a server that
// leaves has not been saved by it.
TEST_F(JobSnapshotsTest, APausedOneOfTheSameStepWaitsForTheStepUnderWay) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const WorkLease lease = *Acquire(kWorker0, 1);
  const int cuts = fakes_[1].Count(&ParameterControl::PrepareCut);
  EXPECT_EQ(snapshots_.WritePaused(absl::ZeroDuration()).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(fakes_[1].Count(&ParameterControl::PrepareCut), cuts);
  Finish(kWorker0, 1, lease);
  ASSERT_EQ(snapshots_.WritePaused(absl::ZeroDuration()), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 1));
}

TEST_F(JobSnapshotsTest, WhatPredecessorsHaveNotCommittedIsRemovedOnce) {
  FileSystem* const files = FileSystem::Real();
  const std::string index = directory_.SnapshotPrefix(7) + ".index";
  const std::string pending = PendingPath(index, 1, 2);
  ASSERT_EQ(WriteFileAtomically(pending, "half"), absl::OkStatus());
  ASSERT_EQ(snapshots_.RemoveUncommitted(), absl::OkStatus());
  EXPECT_FALSE(*files->Exists(pending));
  ASSERT_EQ(WriteFileAtomically(pending, "this chief's"), absl::OkStatus());
  ASSERT_EQ(snapshots_.RemoveUncommitted(), absl::OkStatus());
  EXPECT_TRUE(*files->Exists(pending));
}

}  // namespace
}  // namespace keelson
