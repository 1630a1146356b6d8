#include "core/client/exchange/landing_tracker.h"

#include "core/client/exchange/plan_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LandingTrackerTest : public testing::Test {
 protected:
  std::vector<int> TakeAll() {
    std::vector<int> taken;
    while (const std::optional<int> v = tracker_.Take()) taken.push_back(*v);
    return taken;
  }

  // Variable 1 has parts in three messages of two shards.
  LandingTracker tracker_{
      ShardPlans{{MessageOf({2, 2, 1}), MessageOf({1})}, {MessageOf({1, 0})}, {}}, 3};
};

TEST_F(LandingTrackerTest, AVariableIsTakenOnceWhenItsLastMessageHasLanded) {
  EXPECT_THAT(TakeAll(), IsEmpty());
  tracker_.Landed({0, 0});
  EXPECT_THAT(TakeAll(), ElementsAre(2));
  tracker_.Landed({1, 0});
  EXPECT_THAT(TakeAll(), ElementsAre(0));
  tracker_.Landed({0, 1});
  EXPECT_THAT(TakeAll(), ElementsAre(1));
}

TEST_F(LandingTrackerTest, WhatLandsAgainIsTakenAgain) {
  for (const MessageId id : {MessageId{0, 0}, {0, 1}, {1, 0}}) tracker_.Landed(id);
  EXPECT_THAT(TakeAll(), ElementsAre(2, 1, 0));
  tracker_.Landed({0, 1});
  EXPECT_THAT(TakeAll(), ElementsAre(1));
}

TEST_F(LandingTrackerTest, AVoidMessageHasToLandAgain) {
  for (const MessageId id : {MessageId{0, 0}, {0, 1}, {1, 0}}) tracker_.Landed(id);
  tracker_.Void({1, 0});
  tracker_.Void({1, 0});
  EXPECT_THAT(TakeAll(), ElementsAre(2)) << "0 and 1 were not taken yet";
  tracker_.Landed({1, 0});
  EXPECT_THAT(TakeAll(), ElementsAre(1, 0));
}

TEST_F(LandingTrackerTest, ANewStepBeginsWithNothing) {
  for (const MessageId id : {MessageId{0, 0}, {0, 1}, {1, 0}}) tracker_.Landed(id);
  tracker_.Reset();
  EXPECT_THAT(TakeAll(), IsEmpty());
  tracker_.Landed({0, 0});
  EXPECT_THAT(TakeAll(), ElementsAre(2));
}

}  // namespace
}  // namespace keelson
