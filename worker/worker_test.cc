#include "worker/worker.h"

#include <limits>
#include <thread>

#include "gmock/gmock.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST_F(WorkerTest, TrainsOnItsTicketsInOrderAndLeaves) {
  chief_.AddLease(50, 0, 2);
  chief_.AddLease(51, 2, 3);
  options_.step_bound = absl::Seconds(90);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 2), Pair(51, 3)));
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.registered(), SizeIs(1));
  EXPECT_EQ(chief_.registered()[0].peer(), "host:2");
  EXPECT_EQ(chief_.registered()[0].device(), devices_->name());
  EXPECT_EQ(chief_.registered()[0].step_bound().seconds(), 90);
  const v1::WorkerFigures sums = chief_.sums();
  EXPECT_EQ(sums.steps(), 5);
  EXPECT_EQ(sums.examples(), 20);
  EXPECT_EQ(sums.staleness_sum(), 15);
  EXPECT_THAT(sums.staleness_counts(), ElementsAre(0, 0, 0, 5, 0, 0, 0, 0, 0));
  EXPECT_EQ(sums.push_retries(), 5);
  EXPECT_EQ(sums.bytes_pushed(), 500);
  EXPECT_EQ(sums.bytes_pulled(), 1000);
  EXPECT_EQ(sums.credit_wait_seconds(), 1.25);
  EXPECT_GT(sums.loss_sum(), 0);
  EXPECT_FALSE(stop_.raised()) << "the caller's signal is the caller's";
}

TEST_F(WorkerTest, GradientsAreOfferedAsTheyAreReadyInTheModelsOwnMemory) {
  chief_.AddLease(50, 0, 2);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(lent_);
  EXPECT_THAT(exchanges_.offered, ElementsAre(ElementsAre(1, 0), ElementsAre(1, 0)));
  EXPECT_EQ(exchanges_.pulls, 1) << "later values come with the answers to pushes";
}

TEST_F(WorkerTest, TwoStepsUnderWayAreAcknowledgedOneAfterTheOther) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 60);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(lent_) << "values arrive while the model computes";
  EXPECT_THAT(exchanges_.steps, SizeIs(60));
  EXPECT_GE(exchanges_.drains, 1) << "the last step's";
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 60)));
  EXPECT_EQ(chief_.sums().steps(), 60);
  EXPECT_EQ(chief_.sums().staleness_sum(), 180);
  EXPECT_LT(exchanges_.norms.back(), 0.2 * exchanges_.norms.front());
}

// A chief without more work may be waiting for the step under way: then another lease follows.
TEST_F(WorkerTest, AStepUnderWayIsAcknowledgedBeforeAWaitForWork) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 1);
  chief_.Withhold(true);
  std::thread chief([this] {
    chief_.AwaitCompleted(50, 1);
    chief_.AddLease(51, 1, 1);
    chief_.Withhold(false);
  });
  EXPECT_EQ(Run(), absl::OkStatus());
  chief.join();
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1));
}

TEST_F(WorkerTest, AStepUnderWayIsCountedWhenTrainingIsStopped) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    stop_.Raise();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
}

TEST_F(WorkerTest, ValuesAreFetchedAnewAfterALongWait) {
  const HurryingClock clock;
  clock_ = &clock;
  for (const size_t depth : {1, 2}) {
    options_.config.mutable_transfer()->set_depth(depth);
    exchanges_ = {};
    chief_.AddLease(50 + depth, 0, 3);
    ASSERT_EQ(Run(), absl::OkStatus());
    EXPECT_EQ(exchanges_.pulls, 3);
  }
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(51, 3), Pair(52, 3)));
}

TEST_F(WorkerTest, PulledValuesReachTheModel) {
  chief_.AddLease(50, 0, 60);
  ASSERT_EQ(Run(), absl::OkStatus());
  // Ever smaller gradients: the problem is separable, and each step starts from the last values.
  EXPECT_LT(exchanges_.norms.back(), 0.2 * exchanges_.norms.front());
}

TEST_F(WorkerTest, ClipsTheWholeGradient) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  chief_.AddLease(50, 0, 2);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_THAT(exchanges_.norms, SizeIs(2));
  EXPECT_NEAR(exchanges_.norms[0], 0.01, 1e-6);
  EXPECT_THAT(exchanges_.offered, ElementsAre(SizeIs(2), SizeIs(2))) << "what is clipped";
}

TEST_F(WorkerTest, FrozenVariablesAreNotClipped) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  v1::OptimizerConfig::Group* const group = options_.config.mutable_optimizer()->add_groups();
  group->set_variables("*/kernel");
  group->set_frozen(true);
  chief_.AddLease(50, 0, 1);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_THAT(exchanges_.norms, SizeIs(1));
  EXPECT_GT(exchanges_.norms[0], 0.02);
}

TEST_F(WorkerTest, ALossThatIsNotFiniteIsToldAndNotPushed) {
  initial_ = std::numeric_limits<float>::quiet_NaN();
  chief_.AddLease(50, 0, 1);
  std::thread chief([this] {
    chief_.AwaitNonFiniteLoss();
    chief_.SetPhase(v1::FAILED, "the loss is not finite");
  });
  const absl::Status status = Run();
  chief.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the loss is not finite"));
  EXPECT_THAT(exchanges_.steps, IsEmpty());
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, StopEndsTrainingAndGivesBackWhatIsLeft) {
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    stop_.Raise();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
}

TEST_F(WorkerTest, AServerThatStaysAwayEndsTheWorker) {
  chief_.AddLease(50, 0, 100);
  on_push_ = [] { return absl::UnavailableError("waiting for ps-1 for 10m"); };
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1"));
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, ErrorsBeforeTrainingEndItAfterGoodManners) {
  client_error_ = absl::InvalidArgumentError("the servers hold another model");
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, AModelThatCannotBeBuiltIsAnError) {
  options_.config.mutable_model()->clear_layers();
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WorkerTest, AnotherConfigurationIsRefused) {
  chief_.FailNext(&ChiefService::Register, {absl::FailedPreconditionError("both hashes")});
  EXPECT_EQ(Run().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(chief_.left(), 0);
}

TEST_F(WorkerTest, APositionBeyondTheDataIsAnError) {
  chief_.AddLease(50, 0, 1);
  class Short : public FourFeatures {
    int64_t num_records() const override { return 2; }
  };
  Short dataset;
  Worker worker(
      options_, &chief_,
      [this](ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
        return std::make_unique<FakeClient>(variables_, 0.0f, 1, request.memory, &exchanges_);
      },
      devices_.get(), &dataset, Clock::Real(), &stop_);
  EXPECT_EQ(worker.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
