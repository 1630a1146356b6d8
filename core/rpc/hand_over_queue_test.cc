#include "core/rpc/hand_over_queue.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

const absl::Time kNow = absl::FromUnixSeconds(1'000);

// The ids of all for which there is room.
std::vector<uint64_t> TakeAll(HandOverQueue* queue, absl::Time now = kNow) {
  std::vector<uint64_t> taken;
  while (const auto next = queue->Take(now)) taken.push_back(next->id);
  return taken;
}

TEST(HandOverQueueTest, AddressesTakeTurnsAndTheFirstComesFirst) {
  HandOverQueue queue({});
  for (const uint64_t id : {1, 2, 3}) queue.Add("crowd", id);
  queue.Add("member", 4);
  EXPECT_TRUE(queue.waiting());
  EXPECT_THAT(TakeAll(&queue), ElementsAre(1, 4, 2, 3));
  EXPECT_FALSE(queue.waiting());
}

TEST(HandOverQueueTest, AnAddressHasFewWhoseIntroductionIsUnderWay) {
  HandOverQueue queue({.at_once = 2, .introduction = absl::Seconds(1)});
  for (const uint64_t id : {1, 2, 3, 4, 5}) queue.Add("crowd", id);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(1, 2));
  queue.Add("member", 6);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(6)) << "the crowd is no hindrance to others";
  EXPECT_THAT(TakeAll(&queue, kNow + absl::Milliseconds(999)), IsEmpty());
  EXPECT_THAT(TakeAll(&queue, kNow + absl::Seconds(1)), ElementsAre(3, 4));
}

TEST(HandOverQueueTest, AConnectionThatBecomesKnownMakesRoom) {
  HandOverQueue queue({.at_once = 1});
  for (const uint64_t id : {1, 2, 3}) queue.Add("members", id);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(1));
  queue.Remove("members", 1);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(2));
  queue.Remove("members", 2);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(3));
}

TEST(HandOverQueueTest, OfTooManyThatStayUnknownTheOldestIsDisplaced) {
  HandOverQueue queue({.at_once = 2, .of_address = 2, .pause = absl::Seconds(3)});
  for (const uint64_t id : {1, 2, 3, 4}) queue.Add("crowd", id);
  EXPECT_EQ(queue.Take(kNow)->displaced, std::nullopt);
  EXPECT_EQ(queue.Take(kNow)->displaced, std::nullopt);
  const auto later = queue.Take(kNow + absl::Seconds(2));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->id, 3u);
  EXPECT_THAT(later->displaced, Optional(1u));
  queue.Remove("crowd", 1);  // As whoever closes it says.
  EXPECT_EQ(queue.NextRoom(), kNow + absl::Seconds(5)) << "the next one waits";
  EXPECT_THAT(queue.Take(kNow + absl::Seconds(5))->displaced, Optional(2u));
}

TEST(HandOverQueueTest, AnAddressIsDelayedAndOthersAreNot) {
  HandOverQueue queue({});
  queue.Delay("crowd", kNow + absl::Seconds(2));
  queue.Delay("crowd", kNow + absl::Seconds(1));
  for (const uint64_t id : {1, 2}) queue.Add("crowd", id);
  queue.Add("member", 3);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(3));
  EXPECT_THAT(TakeAll(&queue, kNow + absl::Milliseconds(1999)), IsEmpty());
  EXPECT_THAT(TakeAll(&queue, kNow + absl::Seconds(2)), ElementsAre(1, 2));
}

TEST(HandOverQueueTest, SaysWhenThereIsRoomNext) {
  HandOverQueue queue({.at_once = 1, .introduction = absl::Seconds(1)});
  EXPECT_EQ(queue.NextRoom(), absl::InfiniteFuture());
  for (const uint64_t id : {1, 2, 3}) queue.Add("crowd", id);
  EXPECT_EQ(queue.NextRoom(), absl::InfinitePast());
  EXPECT_THAT(TakeAll(&queue), ElementsAre(1));
  EXPECT_EQ(queue.NextRoom(), kNow + absl::Seconds(1));
  queue.Delay("crowd", kNow + absl::Seconds(3));
  EXPECT_EQ(queue.NextRoom(), kNow + absl::Seconds(3));
  queue.Add("member", 4);
  EXPECT_EQ(queue.NextRoom(), absl::InfinitePast());
  EXPECT_THAT(TakeAll(&queue), ElementsAre(4));
  queue.Remove("crowd", 1);
  EXPECT_EQ(queue.NextRoom(), kNow + absl::Seconds(3)) << "the delay stays";
  EXPECT_THAT(TakeAll(&queue, kNow + absl::Seconds(3)), ElementsAre(2));
}

TEST(HandOverQueueTest, AClosedConnectionWaitsNoLonger) {
  HandOverQueue queue({.at_once = 1});
  queue.Add("crowd", 1);
  queue.Add("crowd", 2);
  queue.Add("other", 3);
  queue.Remove("crowd", 1);
  queue.Remove("other", 3);
  queue.Remove("nobody", 4);
  EXPECT_THAT(TakeAll(&queue), ElementsAre(2));
  queue.Remove("crowd", 2);
  EXPECT_FALSE(queue.waiting());
  EXPECT_THAT(TakeAll(&queue), IsEmpty());
}

}  // namespace
}  // namespace keelson
