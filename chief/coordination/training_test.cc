#include "chief/coordination/training.h"

#include <utility>

#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

constexpr uint32_t kOpeningAttempt = 40;
constexpr int64_t kSteps = 4;

WorkLedger Ledger() { return WorkLedger({kSteps, 1000, 10}); }

Training::Options OptionsOf(absl::string_view mode) {
  Training::Options options;
  options.config_hash = kHash;
  options.mode = ConsistencyMode::Parse(mode).value();
  options.loss_interval = 2;
  return options;
}

Training NewTraining(absl::string_view mode = "async") {
  return Training(OptionsOf(mode), Ledger(), kOpeningAttempt);
}

// The training of a successor that finds this one's state.
Training Successor(const Training& before, const Training::Options& options) {
  return Training(options, *WorkLedger::FromState(before.ToState(), {kSteps, 1000, 10}),
                  kOpeningAttempt);
}

CoordinatorStatus StatusOf(const Training& training, bool workers_away = false) {
  CoordinatorStatus status;
  training.FillStatus(workers_away, &status);
  return status;
}

// The report of a worker that has done its next step with this loss.
WorkerReport StepWithLoss(Training* training, double loss) {
  const auto lease = training->work().Grant(kAlice, 1, 1);
  EXPECT_TRUE(lease.has_value());
  WorkerReport report = Completed(lease->id, 1, 1);
  report.losses = {{lease->tickets[0].step, loss}};
  report.figures.set_loss_sum(loss);
  return report;
}

TEST(TrainingTest, AReportCountsInWorkLossesAndSums) {
  Training training = NewTraining();
  EXPECT_EQ(training.Apply(kWorker0, kAlice, StepWithLoss(&training, 3)).value(), 1);
  EXPECT_FALSE(training.TakeLossPoint().has_value()) << "half of an interval";
  EXPECT_EQ(training.Apply(kWorker1, kAlice, StepWithLoss(&training, 1)).value(), 1);
  const auto point = training.TakeLossPoint();
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->step, 2);
  EXPECT_EQ(point->loss, 2);
  const CoordinatorStatus status = StatusOf(training);
  EXPECT_EQ(status.step, 2);
  EXPECT_EQ(status.max_steps, kSteps);
  EXPECT_EQ(status.recent_loss, 2);
  EXPECT_EQ(status.totals.loss_sum(), 4);
  EXPECT_EQ(status.workers.at(kWorker0).loss_sum(), 3);
  EXPECT_EQ(status.workers.at(kWorker1).steps(), 1);
}

TEST(TrainingTest, TheStepsOfAReportAreThoseOfTheWorkerOrOfTheLedger) {
  Training training = NewTraining();
  const auto lease = training.work().Grant(kAlice, 3, 1);
  EXPECT_EQ(training.Apply(kWorker0, kAlice, Completed(lease->id, 2)).value(), 2)
      << "the worker's sums may come later";
  EXPECT_EQ(training.Apply(kWorker0, kAlice, Completed(lease->id, 2, 5)).value(), 5);
  EXPECT_EQ(training.Apply(kWorker0, kAlice, {}).value(), 0);
}

TEST(TrainingTest, AReportThatCannotBeTrueCountsNowhere) {
  Training training = NewTraining();
  WorkerReport report = StepWithLoss(&training, 3);
  report.leases[0].completed = 2;
  EXPECT_EQ(training.Apply(kWorker0, kAlice, report).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOf(training).totals.steps(), 0);
  EXPECT_EQ(StatusOf(training).recent_loss, 0);
}

TEST(TrainingTest, AReportOfALeaseThatWasTakenBackKeepsItsSums) {
  Training training = NewTraining();
  const WorkerReport late = StepWithLoss(&training, 3);
  training.work().Release(kAlice);
  EXPECT_TRUE(training.Apply(kWorker0, kAlice, late).ok());
  EXPECT_EQ(StatusOf(training).step, 0);
  EXPECT_EQ(StatusOf(training).totals.steps(), 1);
}

TEST(TrainingTest, IsDoneWithItsStepsOrEarlyUnlessWorkersMayHoldMore) {
  Training training = NewTraining();
  EXPECT_FALSE(training.Done(/*workers_away=*/false));
  training.work().EndEarly("good enough");
  EXPECT_TRUE(training.Done(/*workers_away=*/false));
  EXPECT_FALSE(training.Done(/*workers_away=*/true));
  EXPECT_FALSE(StatusOf(training, /*workers_away=*/true).trained);

  Training whole = NewTraining();
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(whole.Apply(kWorker0, kAlice, StepWithLoss(&whole, 1)).ok());
  }
  EXPECT_TRUE(whole.Done(/*workers_away=*/true)) << "there are no more steps than these";
  EXPECT_TRUE(StatusOf(whole, /*workers_away=*/true).trained);
}

TEST(TrainingTest, AStepIsAwaitedUntilItIsDoneOrCannotCome) {
  Training training = NewTraining();
  EXPECT_TRUE(training.Reached(0, /*workers_away=*/false));
  EXPECT_FALSE(training.Reached(1, /*workers_away=*/false));
  ASSERT_TRUE(training.Apply(kWorker0, kAlice, StepWithLoss(&training, 1)).ok());
  EXPECT_TRUE(training.Reached(1, /*workers_away=*/false));
  EXPECT_FALSE(training.Reached(2, /*workers_away=*/false));

  Training ended = NewTraining();
  ended.work().EndEarly("good enough");
  EXPECT_TRUE(ended.Reached(1, /*workers_away=*/false));
  EXPECT_FALSE(ended.Reached(1, /*workers_away=*/true));

  WorkerReport not_finite;
  not_finite.figures.set_non_finite_losses(1);
  ASSERT_TRUE(training.Apply(kWorker0, kAlice, not_finite).ok());
  EXPECT_TRUE(training.Reached(2, /*workers_away=*/false));
}

TEST(TrainingTest, ALossAboveTheHighestEndsTheWaitForSteps) {
  Training::Options options = OptionsOf("async");
  options.max_loss = 5;
  Training training(options, WorkLedger({100, 1000, 10}), kOpeningAttempt);
  for (size_t i = 0; i < DivergenceWatch::kWindow; ++i) {
    EXPECT_FALSE(training.Reached(100, /*workers_away=*/false));
    ASSERT_TRUE(training.Apply(kWorker0, kAlice, StepWithLoss(&training, 6)).ok());
  }
  EXPECT_TRUE(training.Reached(100, /*workers_away=*/false));
  EXPECT_NE(StatusOf(training).diverged, "");
}

TEST(TrainingTest, TheModeAndTheEndAreThoseOfTheStateThatIsContinued) {
  Training before = NewTraining("async");
  before.work().SetMode(ConsistencyMode::Parse("ssp:3").value());
  before.work().EndEarly("good enough");
  const Training after = Successor(before, OptionsOf("async"));
  EXPECT_EQ(after.work().mode().ToString(), "ssp:3");
  EXPECT_EQ(after.work().end_reason(), "good enough");
}

TEST(TrainingTest, AnotherConfigurationHasItsOwnModeAndDoesNotEnd) {
  Training before = NewTraining("async");
  before.work().SetMode(ConsistencyMode::Parse("ssp:3").value());
  before.work().EndEarly("good enough");
  Training::Options options = OptionsOf("sync:2");
  options.config_hash = kHash + 1;
  const Training after = Successor(before, options);
  EXPECT_EQ(after.work().mode().ToString(), "sync:2");
  EXPECT_THAT(after.work().end_reason(), IsEmpty());
}

TEST(TrainingTest, ItsStateHasTheConfiguration) {
  const Training training = NewTraining();
  EXPECT_EQ(training.ToState().config_hash(), kHash);
  v1::PersistedJobState persisted;
  training.ToPersisted(&persisted);
  EXPECT_EQ(persisted.job().config_hash(), kHash);
  EXPECT_EQ(persisted.attempt(), kOpeningAttempt);
}

TEST(TrainingTest, AttemptsBeginWithTheFirst) {
  Training training = NewTraining("sync:1");
  const auto lease = training.work().Grant(kAlice, 1, 1);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->attempt, kOpeningAttempt);
}

}  // namespace
}  // namespace keelson
