#include "core/data/record_order.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

std::vector<int64_t> Records(int64_t n, uint64_t seed, int64_t epoch, bool sequential = false) {
  const RecordOrder order(n, seed, epoch, sequential);
  std::vector<int64_t> records;
  for (int64_t i = 0; i < n; ++i) records.push_back(order.Record(i));
  return records;
}

class RecordOrderSizes : public testing::TestWithParam<int64_t> {};

TEST_P(RecordOrderSizes, VisitsEveryRecordOnce) {
  const int64_t n = GetParam();
  for (const int64_t epoch : {0, 1, 77}) {
    std::vector<bool> seen(n);
    for (const int64_t record : Records(n, 5, epoch)) {
      ASSERT_GE(record, 0);
      ASSERT_LT(record, n);
      ASSERT_FALSE(seen[record]) << record;
      seen[record] = true;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RecordOrderSizes,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 63, 64, 65, 97, 127,
                                         255, 256, 257, 1000, 1023, 1024, 1025, 4096, 8000, 20011));

TEST(RecordOrderTest, LargeSetsStayInRange) {
  for (const int64_t n : {(int64_t{1} << 32) + 1, int64_t{1} << 62, INT64_MAX}) {
    const RecordOrder order(n, 1, 0, false);
    std::set<int64_t> records;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t record = order.Record(n - 1 - i);
      ASSERT_GE(record, 0);
      ASSERT_LT(record, n);
      records.insert(record);
    }
    EXPECT_EQ(records.size(), 1000u);
  }
}

TEST(RecordOrderTest, SameKeySameOrder) { EXPECT_EQ(Records(1000, 3, 4), Records(1000, 3, 4)); }

TEST(RecordOrderTest, DiffersByEpochAndSeed) {
  EXPECT_NE(Records(1000, 3, 4), Records(1000, 3, 5));
  EXPECT_NE(Records(1000, 3, 4), Records(1000, 4, 4));
}

TEST(RecordOrderTest, SmallSetsTakeEveryOrder) {
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 200; ++epoch) orders.insert(Records(3, 9, epoch));
  EXPECT_EQ(orders.size(), 6u);
}

TEST(RecordOrderTest, NeighboursAreSpread) {
  constexpr int64_t kRecords = 8000;
  const std::vector<int64_t> records = Records(kRecords, 11, 0);
  double distance = 0;
  for (size_t i = 1; i < records.size(); ++i) {
    distance += static_cast<double>(std::abs(records[i] - records[i - 1]));
  }
  // Two uniform draws from [0, n) are n / 3 apart in the mean.
  EXPECT_NEAR(distance / static_cast<double>(records.size() - 1), kRecords / 3.0, kRecords / 30.0);
}

class GroupedOrders : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(GroupedOrders, VisitEveryRecordOnceAndGroupsAtATime) {
  const auto [n, group] = GetParam();
  for (const int64_t epoch : {0, 1, 77}) {
    const RecordOrder order(n, 5, epoch, false, group);
    std::vector<bool> seen(n);
    std::set<int64_t> finished;
    int64_t last = -1;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t record = order.Record(i);
      ASSERT_GE(record, 0);
      ASSERT_LT(record, n);
      ASSERT_FALSE(seen[record]) << record;
      seen[record] = true;
      if (record / group == last) continue;
      // A group that was left is not entered again.
      ASSERT_TRUE(finished.insert(record / group).second);
      last = record / group;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, GroupedOrders,
                         testing::Values(std::pair(1, 2), std::pair(5, 4096), std::pair(7, 2),
                                         std::pair(8, 4), std::pair(100, 7), std::pair(8192, 4096),
                                         std::pair(10000, 4096), std::pair(20011, 64)));

TEST(RecordOrderTest, GroupsDifferByEpochAndGroup) {
  const RecordOrder first(64, 3, 0, false, 8), second(64, 3, 1, false, 8);
  std::set<std::vector<int64_t>> orders;
  std::vector<int64_t> groups[2];
  for (int64_t begin = 0; begin < 64; begin += 8) {
    for (const RecordOrder* order : {&first, &second}) {
      std::vector<int64_t> within;
      for (int64_t i = begin; i < begin + 8; ++i) within.push_back(order->Record(i) % 8);
      orders.insert(within);
      groups[order == &second].push_back(order->Record(begin) / 8);
    }
  }
  EXPECT_GT(orders.size(), 12u);
  EXPECT_NE(groups[0], groups[1]);
}

TEST(RecordOrderTest, SequentialIsTheIdentity) {
  EXPECT_EQ(Records(4, 3, 4, true), (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace keelson
