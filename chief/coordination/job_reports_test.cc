#include "chief/coordination/job_reports.h"

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class JobReportsTest : public CoordinatorTest {};

TEST_F(JobReportsTest, SumsAddUpAndTheLargestStalenessStays) {
  StartTraining(10);
  Register(kWorker0, 1);
  WorkerReport report;
  report.figures.set_steps(2);
  report.figures.set_examples(20);
  report.figures.set_loss_sum(1.5);
  report.figures.set_staleness_sum(3);
  report.figures.set_staleness_max(2);
  report.figures.set_push_retries(1);
  report.figures.set_pull_seconds(0.5);
  report.figures.set_credit_wait_seconds(0.25);
  report.figures.set_bytes_pushed(100);
  report.figures.set_bytes_pulled(200);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  }
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  const v1::WorkerFigures& totals = status.totals;
  EXPECT_EQ(totals.steps(), 4);
  EXPECT_EQ(totals.examples(), 40);
  EXPECT_EQ(totals.loss_sum(), 3.0);
  EXPECT_EQ(totals.staleness_sum(), 6);
  EXPECT_EQ(totals.staleness_max(), 2);
  EXPECT_EQ(totals.push_retries(), 2);
  EXPECT_EQ(totals.pull_seconds(), 1.0);
  EXPECT_EQ(totals.credit_wait_seconds(), 0.5);
  EXPECT_EQ(totals.bytes_pushed(), 200);
  EXPECT_EQ(totals.bytes_pulled(), 400);
  ASSERT_EQ(status.workers.size(), 1u);
  EXPECT_EQ(status.workers.at(kWorker0).staleness_sum(), 6);
  EXPECT_EQ(status.workers.at(kWorker0).push_retries(), 2);
}

TEST_F(JobReportsTest, SumsOfAWorkerOutliveItsMemberships) {
  StartTraining(10);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(2), Completed(0, 0, 5)),
            absl::OkStatus());
  ASSERT_EQ(coordinator_.members()->Leave(kWorker1, TestId(2), Completed(0, 0, 1)),
            absl::OkStatus());
  Register(kWorker1, 3);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker1, TestId(3), Completed(0, 0, 3)),
            absl::OkStatus());
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  EXPECT_EQ(status.workers.at(kWorker1).steps(), 9);
  EXPECT_EQ(status.totals.steps(), 9);
}

TEST_F(JobReportsTest, TheStatusBeforeTrainingIsThatOfTheConfiguration) {
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  EXPECT_EQ(status.phase, JobPhase::kWaitingForServers);
  EXPECT_EQ(status.mode, ConsistencyMode());
  EXPECT_EQ(status.evaluated_step, -1);
  EXPECT_FALSE(status.trained);
}

TEST_F(JobReportsTest, TheStatusTellsNoSecrets) {
  const MembershipId id = TestId(1);
  ASSERT_NE(id.secret, 0u);
  ASSERT_TRUE(coordinator_.members()->Register(kWorker0, id, kHash, "host:1").ok());
  const CoordinatorStatus status = coordinator_.reports()->GetStatus();
  ASSERT_EQ(status.members.size(), 1u);
  EXPECT_EQ(status.members[0].incarnation, id.incarnation);
  EXPECT_EQ(status.members[0].secret, 0u);
}

TEST_F(JobReportsTest, TheNewestFiguresAreInTheStatus) {
  v1::TrainingFigures newest;
  newest.set_steps_per_second(7.5);
  coordinator_.reports()->SetFigures(newest);
  EXPECT_EQ(coordinator_.reports()->GetStatus().newest.steps_per_second(), 7.5);
}

TEST_F(JobReportsTest, LossesOfStepsBecomePointsOfTheCurve) {
  EXPECT_FALSE(coordinator_.reports()->TakeLossPoint().has_value()) << "before training";
  EXPECT_FALSE(coordinator_.reports()->TakeLastLossPoint().has_value());
  StartTraining(10);
  Register(kWorker0, 1);
  WorkerReport report;
  report.losses = {{0, 3}, {1, 1}};
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  EXPECT_FALSE(coordinator_.reports()->TakeLossPoint().has_value()) << "a point has 100 steps";
  const auto rest = coordinator_.reports()->TakeLastLossPoint();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->step, 2);
  EXPECT_EQ(rest->loss, 2);
}

}  // namespace
}  // namespace keelson
