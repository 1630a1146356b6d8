#include "chief/coordination/job_control.h"

#include <optional>
#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

class JobControlTest : public CoordinatorTest {};

class ModeControlTest : public SuccessionTest {};

TEST_F(JobControlTest, TheLastStepEndsTheChiefsWaitAndItsSnapshotThatOfWorkers) {
  StartTraining(1);
  Register(kWorker0, 1);
  Register(kWorker1, 2);
  const auto last = Acquire(kWorker0, 1);
  std::optional<WorkLease> waited = WorkLease();
  int64_t steps = 0;
  std::thread worker([&] { waited = Acquire(kWorker1, 2, {}, kLong); });
  std::thread chief(
      [&] { steps = coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_); });
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(last->id, 1)),
            absl::OkStatus());
  chief.join();
  EXPECT_EQ(steps, 1);
  coordinator_.control()->SetPhase(JobPhase::kFinishing);
  coordinator_.control()->SetPhase(JobPhase::kEvaluating);
  worker.join();
  EXPECT_FALSE(waited.has_value());
}

TEST_F(JobControlTest, WaitForStepsEndsWithTimeStopOrALossThatIsNotFinite) {
  StartTraining(10);
  EXPECT_EQ(coordinator_.control()->WaitForSteps(0, clock_.Monotonic() + kLong, stop_), 0);
  std::thread moves([&] { clock_.Advance(kLong); });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, absl::ZeroDuration() + kLong, stop_), 0);
  moves.join();
  Register(kWorker0, 1);
  std::thread reports([&] {
    WorkerReport report;
    report.figures.set_non_finite_losses(1);
    EXPECT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), report), absl::OkStatus());
  });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_), 0);
  reports.join();
}

TEST_F(JobControlTest, WaitForStepsEndsWithStop) {
  StartTraining(10);
  std::thread stops([&] { stop_.Raise(); });
  EXPECT_EQ(coordinator_.control()->WaitForSteps(1, clock_.Monotonic() + kLong, stop_), 0);
  stops.join();
}

TEST_F(ModeControlTest, TheModeIsChangedWhileTheJobTrains) {
  const ConsistencyMode bounded = ConsistencyMode::Parse("ssp:3").value();
  EXPECT_EQ(chief_->control()->SetMode(bounded),
            absl::FailedPreconditionError("consistency mode: the job does not train"));
  StartTraining();
  ASSERT_TRUE(Register(kWorker0, 1).ok());
  EXPECT_EQ(chief_->control()->mode(), ConsistencyMode());
  chief_->persistence()->NoteStored(chief_->persistence()->versions().current);
  EXPECT_EQ(chief_->control()->SetMode(bounded), absl::OkStatus());
  EXPECT_TRUE(chief_->persistence()->StateUrgent());
  EXPECT_EQ(chief_->control()->mode(), bounded);
  const WorkLease lease = *Acquire(kWorker0, 1);
  EXPECT_TRUE(lease.fresh_values);
  EXPECT_EQ(chief_->control()->SetMode(ConsistencyMode::Parse("sync:1").value()), absl::OkStatus());
  EXPECT_EQ(chief_->control()->mode(), bounded);
  EXPECT_EQ(chief_->reports()->GetStatus().next_mode->ToString(), "sync:1");
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  EXPECT_TRUE(Acquire(kWorker0, 1, Completed(lease.id, 1)).has_value());
  EXPECT_EQ(chief_->reports()->GetStatus().mode.ToString(), "sync:1");
  EXPECT_EQ(chief_->reports()->GetStatus().next_mode, std::nullopt);
  chief_->control()->SetPhase(JobPhase::kFinishing);
  EXPECT_EQ(chief_->control()->SetMode(bounded).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobControlTest, APausedJobHandsNothingOutUntilItGoesOn) {
  StartTraining(10);
  Register(kWorker0, 1);
  const auto lease = Acquire(kWorker0, 1);
  ASSERT_TRUE(lease.has_value());
  EXPECT_FALSE(coordinator_.control()->PauseWork(kNoWait)) << "a step is under way";
  EXPECT_FALSE(Acquire(kWorker0, 1, Completed(lease->id, 1)).has_value());
  EXPECT_TRUE(coordinator_.control()->PauseWork(kNoWait));
  coordinator_.control()->ResumeWork();
  EXPECT_TRUE(Acquire(kWorker0, 1).has_value());
}

TEST_F(JobControlTest, AJobFailsForAReason) {
  EXPECT_EQ(coordinator_.control()->error(), "");
  coordinator_.control()->Fail(absl::DataLossError("ps-1 is away"));
  EXPECT_EQ(coordinator_.control()->phase(), JobPhase::kFailed);
  EXPECT_EQ(coordinator_.control()->error(), "ps-1 is away");
}

TEST_F(JobControlTest, OnlyAJobThatTrainsChangesItsMode) {
  const ConsistencyMode mode = ConsistencyMode::Parse("ssp:1").value();
  EXPECT_EQ(coordinator_.control()->SetMode(mode).code(), absl::StatusCode::kFailedPrecondition);
  StartTraining(10);
  EXPECT_EQ(coordinator_.control()->SetMode(mode), absl::OkStatus());
  EXPECT_EQ(coordinator_.control()->mode(), mode);
  coordinator_.control()->SetPhase(JobPhase::kFinishing);
  EXPECT_EQ(coordinator_.control()->SetMode(ConsistencyMode()).code(),
            absl::StatusCode::kFailedPrecondition);
}

// Its last snapshot may be under way, and would not name the change that the answer promises.
TEST_F(JobControlTest, AJobWhoseStepsAreDoneDoesNotChangeItsMode) {
  StartTraining(1);
  Register(kWorker0, 1);
  const auto lease = Acquire(kWorker0, 1);
  ASSERT_TRUE(lease.has_value());
  EXPECT_FALSE(Acquire(kWorker0, 1, Completed(lease->id, 1)).has_value());
  EXPECT_EQ(coordinator_.control()->phase(), JobPhase::kTraining);
  const ConsistencyMode mode = ConsistencyMode::Parse("ssp:1").value();
  EXPECT_EQ(coordinator_.control()->SetMode(mode),
            absl::FailedPreconditionError("consistency mode: the job does not train"));
}

}  // namespace
}  // namespace keelson
