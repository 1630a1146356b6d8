#include "chief/coordination/divergence_watch.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class DivergenceWatchTest : public testing::Test {
 protected:
  static void Add(DivergenceWatch* watch, double loss, int count = DivergenceWatch::kWindow) {
    for (int i = 0; i < count; ++i) watch->Add(loss);
  }

  DivergenceWatch watch_{/*max_loss=*/0, /*restored=*/false};
};

TEST_F(DivergenceWatchTest, SaysNothingOfALossThatShrinksOrOfTheFirstSteps) {
  watch_.Add(2);
  watch_.Add(1e30);
  EXPECT_FALSE(watch_.diverging());
  EXPECT_EQ(watch_.Diverged(), "");
  Add(&watch_, 1);
  EXPECT_FALSE(watch_.diverging());
}

TEST_F(DivergenceWatchTest, TellsADivergingLossFromOneThatHasDiverged) {
  Add(&watch_, 2);
  Add(&watch_, 19);
  EXPECT_FALSE(watch_.diverging());
  Add(&watch_, 21);
  EXPECT_TRUE(watch_.diverging());
  EXPECT_EQ(watch_.Diverged(), "");
  Add(&watch_, 3e6);
  EXPECT_EQ(watch_.Diverged(),
            "the mean training loss of 20 steps is 3e+06, expected at most 2e+06 (a million times "
            "the first one)");
}

TEST_F(DivergenceWatchTest, SeesThatTheSecondStepWasTooFar) {
  watch_.Add(2);
  Add(&watch_, 1e29);
  EXPECT_THAT(watch_.Diverged(), HasSubstr("is 1e+29, expected at most 2e+06"));
}

TEST_F(DivergenceWatchTest, AShortJobHasDivergedWhenItEnds) {
  watch_.Add(2);
  Add(&watch_, 1e29, 5);
  EXPECT_EQ(watch_.Diverged(), "");
  EXPECT_THAT(watch_.Diverged(/*ended=*/true), HasSubstr("loss of 6 steps is 8.33333e+28"));
}

TEST_F(DivergenceWatchTest, OneBadStepIsNoDivergence) {
  Add(&watch_, 2);
  watch_.Add(100);
  EXPECT_FALSE(watch_.diverging());
}

TEST_F(DivergenceWatchTest, RecoversFromALossOfAnySize) {
  Add(&watch_, 2);
  Add(&watch_, 1e21);
  EXPECT_TRUE(watch_.diverging());
  Add(&watch_, 1);
  EXPECT_FALSE(watch_.diverging());
  EXPECT_EQ(watch_.mean(), 1);
}

TEST_F(DivergenceWatchTest, TheConfigurationMaySetTheBound) {
  DivergenceWatch watch(/*max_loss=*/5, /*restored=*/false);
  Add(&watch, 2);
  EXPECT_EQ(watch.Diverged(), "");
  Add(&watch, 6);
  EXPECT_TRUE(watch.diverging());
  EXPECT_THAT(watch.Diverged(), HasSubstr("is 6, expected at most 5 (train.max_loss)"));
}

// Its first steps may be at a loss of 1e-7.
TEST_F(DivergenceWatchTest, ARestoredJobIsComparedWithOneAtLeast) {
  DivergenceWatch watch(/*max_loss=*/0, /*restored=*/true);
  Add(&watch, 1e-7);
  Add(&watch, 1);
  EXPECT_FALSE(watch.diverging());
  Add(&watch, 11);
  EXPECT_TRUE(watch.diverging());
}

}  // namespace
}  // namespace keelson
