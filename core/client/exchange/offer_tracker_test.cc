#include "core/client/exchange/offer_tracker.h"

#include "core/client/exchange/plan_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OfferTrackerTest, MessageIsCompleteWithItsLastVariable) {
  OfferTracker offers({{MessageOf({2, 1, 1}), MessageOf({1, 0})}, {}, {MessageOf({2, 2})}}, 3);
  for (int step = 0; step < 2; ++step) {
    offers.Reset();
    EXPECT_THAT(offers.Offer(1), IsEmpty());
    EXPECT_THAT(offers.Offer(2), ElementsAre(MessageId{0, 0}, MessageId{2, 0}));
    EXPECT_THAT(offers.Offer(2), IsEmpty()) << "offered before";
    EXPECT_THAT(offers.Offer(0), ElementsAre(MessageId{0, 1}));
    EXPECT_THAT(offers.OfferRest(), IsEmpty());
  }
}

TEST(OfferTrackerTest, RestCompletesEverythingElse) {
  OfferTracker offers({{MessageOf({1}), MessageOf({0})}}, 2);
  EXPECT_THAT(offers.Offer(1), ElementsAre(MessageId{0, 0}));
  EXPECT_THAT(offers.OfferRest(), ElementsAre(MessageId{0, 1}));
}

}  // namespace
}  // namespace keelson
