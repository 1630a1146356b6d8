#include "chief/coordination/record_set.h"

#include <random>
#include <set>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RecordSetTest, KeepsRangesApartAndInOrder) {
  RecordSet set;
  EXPECT_TRUE(set.Add({1, 0, 10}));
  EXPECT_TRUE(set.Add({0, 20, 30}));
  EXPECT_TRUE(set.Add({0, 10, 20}));
  EXPECT_EQ(set.size(), 30);
  EXPECT_THAT(set.ranges(),
              ElementsAre(RecordRange{0, 10, 20}, RecordRange{0, 20, 30}, RecordRange{1, 0, 10}));
  EXPECT_EQ(set.TakeFirst(), (RecordRange{0, 10, 20}));
  EXPECT_EQ(set.size(), 20);
}

TEST(RecordSetTest, AddRefusesWhatItHas) {
  RecordSet set;
  ASSERT_TRUE(set.Add({0, 10, 20}));
  for (const RecordRange& range : {RecordRange{0, 10, 20}, RecordRange{0, 0, 11},
                                   RecordRange{0, 19, 25}, RecordRange{0, 12, 13}}) {
    EXPECT_FALSE(set.Add(range)) << range.begin;
  }
  EXPECT_TRUE(set.Add({0, 15, 15}));
  EXPECT_TRUE(set.Add({1, 10, 20}));
  EXPECT_EQ(set.ranges().size(), 2u);
}

TEST(RecordSetTest, RemoveCuts) {
  RecordSet set;
  ASSERT_TRUE(set.Add({0, 0, 10}));
  ASSERT_TRUE(set.Add({0, 10, 20}));
  set.Remove({0, 3, 12});
  EXPECT_THAT(set.ranges(), ElementsAre(RecordRange{0, 0, 3}, RecordRange{0, 12, 20}));
  set.Remove({0, 14, 15});
  EXPECT_THAT(set.ranges(),
              ElementsAre(RecordRange{0, 0, 3}, RecordRange{0, 12, 14}, RecordRange{0, 15, 20}));
  set.Remove({0, 0, 100});
  EXPECT_THAT(set.ranges(), IsEmpty());
}

TEST(RecordSetTest, CoversAcrossNeighbours) {
  RecordSet set;
  ASSERT_TRUE(set.Add({0, 0, 10}));
  ASSERT_TRUE(set.Add({0, 10, 20}));
  ASSERT_TRUE(set.Add({0, 25, 30}));
  EXPECT_TRUE(set.Covers({0, 5, 20}));
  EXPECT_FALSE(set.Covers({0, 5, 21}));
  EXPECT_FALSE(set.Covers({0, 20, 26}));
  EXPECT_TRUE(set.Covers({0, 22, 22}));
  EXPECT_FALSE(set.Covers({1, 0, 1}));
  EXPECT_FALSE(RecordSet().Covers({0, 0, 1}));
}

// Against a set of single positions.
TEST(RecordSetTest, IsASetOfPositions) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t high) {
    return std::uniform_int_distribution<int64_t>(0, high)(random);
  };
  RecordSet set;
  std::set<std::pair<int64_t, int64_t>> truth;
  for (int i = 0; i < 5000; ++i) {
    const int64_t begin = draw(30);
    const RecordRange range = {draw(2), begin, begin + draw(8)};
    int64_t present = 0;
    for (int64_t p = range.begin; p < range.end; ++p) present += truth.contains({range.epoch, p});
    ASSERT_EQ(set.Intersects(range), present > 0);
    ASSERT_EQ(set.Covers(range), present == range.size());
    const bool add = draw(1) == 0;
    if (add) {
      ASSERT_EQ(set.Add(range), present == 0);
    } else {
      set.Remove(range);
    }
    for (int64_t p = range.begin; p < range.end; ++p) {
      if (!add) truth.erase({range.epoch, p});
      if (add && present == 0) truth.insert({range.epoch, p});
    }
    ASSERT_EQ(set.size(), static_cast<int64_t>(truth.size()));
  }
}

}  // namespace
}  // namespace keelson
