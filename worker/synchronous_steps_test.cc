// Tickets whose gradients the servers add up, and tickets that want fresh values.
#include "gmock/gmock.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// At both depths: these steps are not overlapped.
class SynchronousStepsTest : public WorkerTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    options_.config.mutable_transfer()->set_depth(GetParam());
  }
};

TEST_P(SynchronousStepsTest, ARoundIsComputedFromFreshValuesAndPushedWithItsAttempt) {
  chief_.AddSynchronousLease(50, 3, 7, false);
  chief_.AddSynchronousLease(51, 4, 7, false);
  chief_.AddSynchronousLease(52, 4, 8, false);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(exchanges_.pulls, 3);
  EXPECT_THAT(exchanges_.steps, ElementsAre(3, 4, 4));
  ASSERT_THAT(exchanges_.aggregations, SizeIs(3));
  EXPECT_EQ(exchanges_.aggregations[2].round, 4);
  EXPECT_EQ(exchanges_.aggregations[2].attempt, 8u);
  EXPECT_EQ(exchanges_.aggregations[2].weight, 4.0f) << "records";
  EXPECT_THAT(exchanges_.offered[0], ElementsAre(1, 0)) << "nobody needs to be asked";
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1), Pair(51, 1), Pair(52, 1)));
  EXPECT_THAT(chief_.Requests(&ChiefService::Admit), IsEmpty());
  EXPECT_EQ(exchanges_.drains, 0);
}

TEST_P(SynchronousStepsTest, TheNextStepsValuesAreAskedForAhead) {
  for (int64_t step = 3; step < 6; ++step) {
    v1::AcquireWorkResponse lease = FakeChief::MakeLease(50 + step, step, 1);
    lease.mutable_tickets(0)->set_attempt(7);
    lease.mutable_tickets(0)->set_last_of_step(step != 4);
    lease.mutable_tickets(0)->set_follows_round(step != 3);
    chief_.AddLease(lease);
  }
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(3, 4, 5));
  EXPECT_THAT(exchanges_.pulled_for, ElementsAre(0, 4, 5));
  EXPECT_THAT(exchanges_.asked_ahead, ElementsAre(4, 6));
}

TEST_P(SynchronousStepsTest, AContestedGradientIsSentWhenTheChiefWantsIt) {
  chief_.AddSynchronousLease(50, 3, 1, true);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(chief_.Requests(&ChiefService::Admit), SizeIs(1));
  EXPECT_THAT(exchanges_.offered, ElementsAre(SizeIs(2)));
  ASSERT_THAT(exchanges_.aggregations, SizeIs(1));
  EXPECT_EQ(exchanges_.aggregations[0].round, 3);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
}

TEST_P(SynchronousStepsTest, AGradientThatComesTooLateIsNotSent) {
  chief_.AddSynchronousLease(50, 3, 1, true);
  chief_.AddSynchronousLease(51, 4, 1, true);
  chief_.DoNotAdmit(50);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(chief_.Requests(&ChiefService::Admit), SizeIs(2));
  EXPECT_THAT(exchanges_.steps, ElementsAre(4));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(51, 1)));
  EXPECT_EQ(chief_.sums().steps(), 1);
}

TEST_P(SynchronousStepsTest, AGradientThatTheServersRefuseIsNotCounted) {
  chief_.AddSynchronousLease(50, 3, 1, false);
  chief_.AddSynchronousLease(51, 3, 2, false);
  chief_.WriteOff(1);
  exchanges_.refused = {1};
  ASSERT_EQ(Run(), absl::OkStatus());
  const std::vector<v1::RefusedPush> refused = chief_.refused();
  ASSERT_THAT(refused, SizeIs(1)) << "the chief may wait for it";
  EXPECT_EQ(refused[0].lease_id(), 50u);
  EXPECT_EQ(refused[0].step(), 3);
  EXPECT_EQ(refused[0].attempt(), 1u);
  EXPECT_THAT(exchanges_.steps, ElementsAre(3, 3));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(51, 1)));
  EXPECT_EQ(chief_.sums().steps(), 1);
}

TEST_P(SynchronousStepsTest, AStepUnderWayIsAcknowledgedBeforeASynchronousOne) {
  chief_.AddLease(50, 0, 2);
  chief_.AddSynchronousLease(51, 2, 1, false);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 2), Pair(51, 1)));
  EXPECT_EQ(exchanges_.pulls, 2);
}

TEST_P(SynchronousStepsTest, ALeaseThatWantsFreshValuesGetsThemOnce) {
  chief_.AddLease(50, 0, 2);
  v1::AcquireWorkResponse lease = FakeChief::MakeLease(51, 2, 3);
  lease.set_fresh_values(true);
  chief_.AddLease(lease);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(exchanges_.pulls, 2) << "later values come with the answers to its pushes";
  EXPECT_THAT(exchanges_.aggregations, IsEmpty());
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 2), Pair(51, 3)));
}

INSTANTIATE_TEST_SUITE_P(Depths, SynchronousStepsTest, testing::Values(1, 2));

}  // namespace
}  // namespace keelson
