#include "ps_server/units/hot_ids.h"

#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

TEST(HotIdsTest, CountsExactlyWhileThereAreFewIds) {
  HotIds ids;
  for (uint64_t id = 0; id < 10; ++id) {
    for (uint64_t i = 0; i <= id; ++i) ids.Add(id);
  }
  const std::vector<HotIds::Count> top = ids.Top(3);
  ASSERT_EQ(top.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(top[i].id, 9 - i);
    EXPECT_EQ(top[i].count, static_cast<int64_t>(10 - i));
    EXPECT_EQ(top[i].error, 0);
  }
}

TEST(HotIdsTest, FindsTheIdsThatAreOftenAmongManyOthers) {
  HotIds ids;
  int64_t seven = 0, eight = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint32_t draw = Philox(1, 2, i)[0] % 10;
    if (draw == 0) ++seven;
    if (draw == 1 && i % 2 == 0) ++eight;
    ids.Add(draw == 0 ? 7 : draw == 1 && i % 2 == 0 ? 8 : 1000 + i);
  }
  const std::vector<HotIds::Count> top = ids.Top(2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 7u);
  EXPECT_EQ(top[1].id, 8u);
  for (const auto& [found, count] : {std::pair(top[0], seven), std::pair(top[1], eight)}) {
    EXPECT_LE(found.count, count);
    EXPECT_GE(found.count + found.error, count);
    EXPECT_LE(found.error, 100'000 / static_cast<int64_t>(HotIds::kCounted));
  }
}

class HotRowsTest : public OneTableTest {
 protected:
  HotRowsTest() : OneTableTest(TableSpec()) {}
};

// Every push has ids 0 to 9, and others once.
TEST_F(HotRowsTest, AStoreTellsWhichIdsPushesHaveMost) {
  for (int64_t step = 0; step < 3000; ++step) {
    std::vector<uint64_t> ids = IdsFrom(0, 10);
    for (uint64_t i = 0; i < 90; ++i) {
      ids.push_back(1000 + static_cast<uint64_t>(step) * 90 + i);
    }
    Push(step, ids);
  }
  const std::vector<HotIds::Count> hottest = store_->Hottest(0, 10);
  ASSERT_EQ(hottest.size(), 10u);
  for (const HotIds::Count& hot : hottest) {
    EXPECT_LT(hot.id, 10u);
    EXPECT_GT(hot.count + hot.error, 1000) << hot.id;
    EXPECT_LT(hot.count, 6000) << hot.id;
  }
}

TEST_F(HotRowsTest, LookUpsAreCounted) {
  Push(0, IdsFrom(0, 10));
  Read(IdsFrom(5, 25));
  Read({5});
  EXPECT_EQ(Size().looked_up, 21);
  EXPECT_EQ(Size().looked_up_absent, 15);
}

}  // namespace
}  // namespace keelson
