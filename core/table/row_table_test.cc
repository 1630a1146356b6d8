#include "core/table/row_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "core/table/row_table_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(RowTableTest, EveryIdCanBeARow) {
  TableForTest test;
  const std::vector<uint64_t> ids = {0, 1, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 1};
  for (const RowHeader* row : test.Find(ids)) EXPECT_EQ(row, nullptr);
  test.Create(ids);
  EXPECT_EQ(test.table.rows(), ids.size());
  const auto rows = test.Find(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_NE(rows[i], nullptr);
    EXPECT_EQ(rows[i]->id, ids[i]);
  }
  EXPECT_EQ(test.table.Erase(ids), ids.size());
  for (const RowHeader* row : test.Find(ids)) EXPECT_EQ(row, nullptr);
  EXPECT_EQ(test.table.Erase(ids), 0u);
}

TEST(RowTableTest, ANewRowHasItsInitialValuesAndSlots) {
  TableForTest test;
  for (int times = 0; times < 2; ++times) {
    // The second time the place has been used.
    const auto rows = test.Create({7, 8});
    for (RowHeader* row : rows) {
      EXPECT_EQ(row->last_step, 0u);
      EXPECT_EQ(row->updates, 0);
      EXPECT_FALSE(row->admitted());
      std::vector<float> expected(TableForTest::kDim);
      test.initial.Fill(row->id, absl::MakeSpan(expected));
      expected.insert(expected.end(), TableForTest::kDim, 0.5f);
      expected.push_back(-1);
      EXPECT_EQ(std::vector<float>(row->values(), row->values() + expected.size()), expected);
      std::fill_n(row->values(), expected.size(), 100.0f);
      row->last_step = row->updates = 9;
      row->set_admitted(true);
    }
    test.table.Erase({7, 8});
  }
}

TEST(RowTableTest, AnIdThatIsTwiceInABatchIsOneRow) {
  TableForTest test;
  const auto rows = test.Create({5, 5});
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(test.table.rows(), 1u);
  EXPECT_EQ(test.table.Erase({5, 5}), 1u);
}

TEST(RowTableTest, AddedRowsAreThere) {
  TableForTest test;
  test.table.Reserve(1000);
  const auto ids = IdsFrom(0, 1000);
  std::vector<RowHeader*> rows(ids.size());
  ASSERT_EQ(test.table.Add(ids, absl::MakeSpan(rows)), absl::OkStatus());
  EXPECT_EQ(test.table.rows(), ids.size());
  const auto found = test.Find(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(found[i], rows[i]);
    EXPECT_EQ(rows[i]->id, ids[i]);
    EXPECT_EQ(rows[i]->last_step, 0u);
    EXPECT_EQ(rows[i]->updates, 0);
  }
}

TEST(RowTableTest, AddingMoreRowsThanThereIsRoomForIsAnError) {
  TableForTest test(/*max_numbers=*/50);
  const auto ids = IdsFrom(0, 60);
  std::vector<RowHeader*> rows(ids.size());
  const absl::Status status = test.table.Add(ids, absl::MakeSpan(rows));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no numbers for more than its 50 rows"));
  EXPECT_EQ(test.table.rows(), 50u);
  EXPECT_NE(test.Find({49})[0], nullptr);
}

TEST(RowTableTest, ReadingCreatesNothing) {
  TableForTest test;
  test.Find({1, 2, 3});
  EXPECT_EQ(test.FindForChange({1, 2, 3}), std::vector<RowHeader*>(3));
  EXPECT_EQ(test.table.rows(), 0u);
  EXPECT_EQ(test.table.row_bytes() + test.table.index_bytes(), 0u);
}

TEST(RowTableTest, DoesWhatAMapDoes) {
  TableForTest test;
  std::mt19937_64 random(3);
  std::unordered_map<uint64_t, float> map;
  for (int round = 0; round < 1500; ++round) {
    // More ids for a while, then fewer, so that the table grows and shrinks.
    const uint64_t range = round % 500 < 300 ? 40000 : 3000;
    std::vector<uint64_t> ids(1 + random() % 100);
    for (uint64_t& id : ids) id = random() % range * 1024;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    if (random() % 5 < 2) {
      size_t expected = 0;
      if (round % 500 >= 300) {
        for (uint64_t& id : ids) id = random() % 40000 * 1024;
        for (int i = 0; i < 300; ++i) ids.push_back(random() % 40000 * 1024);
      }
      for (const uint64_t id : ids) expected += map.erase(id);
      EXPECT_EQ(test.table.Erase(ids), expected);
    } else {
      const auto rows = test.Create(ids);
      for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(rows[i]->id, ids[i]);
        const auto found = map.find(ids[i]);
        if (found != map.end()) {
          ASSERT_EQ(rows[i]->values()[1], found->second);
        }
        map[ids[i]] = rows[i]->values()[1] = static_cast<float>(round);
      }
    }
    ASSERT_EQ(test.table.rows(), map.size());
    if (round % 5 == 0) test.table.Compact(50);
    std::vector<uint64_t> wanted(70);
    for (uint64_t& id : wanted) id = random() % 40000 * 1024;
    const auto rows = test.Find(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto found = map.find(wanted[i]);
      ASSERT_EQ(rows[i] != nullptr, found != map.end());
      if (rows[i] != nullptr) {
        ASSERT_EQ(rows[i]->values()[1], found->second);
      }
    }
  }
}

TEST(RowTableTest, MemoryFallsAfterErasureAndIsReused) {
  TableForTest test;
  const std::vector<uint64_t> ids = IdsFrom(0, 40000);
  test.Create(ids);
  const auto bytes = [&] { return test.table.row_bytes() + test.table.index_bytes(); };
  const size_t full = bytes();
  for (int times = 0; times < 3; ++times) {
    // Nine of ten rows, wherever they are.
    std::vector<uint64_t> erased, kept;
    for (const uint64_t id : ids) {
      ((id + static_cast<uint64_t>(times)) % 10 == 0 ? kept : erased).push_back(id);
    }
    EXPECT_EQ(test.table.Erase(erased), erased.size());
    while (test.table.Compact(1000)) {
    }
    EXPECT_LT(bytes(), full / 7);
    for (const RowHeader* row : test.Find(kept)) ASSERT_NE(row, nullptr);
    for (const RowHeader* row : test.Find(erased)) ASSERT_EQ(row, nullptr);
    test.Create(ids);
    EXPECT_LT(bytes(), full + full / 20);
  }
  test.table.Erase(ids);
  EXPECT_LT(bytes(), full / 50);
}

TEST(RowTableTest, SmallTablesTakeLittleMemory) {
  TableForTest test;
  test.Create({1});
  EXPECT_LT(test.table.row_bytes() + test.table.index_bytes(), 600u);
  EXPECT_LE(sizeof(RowTable), 256u);
}

// Of 20 rows, in several chunks, after half of 40 were erased.
TEST(RowTableTest, SamplesAreOfAllRows) {
  TableForTest test;
  std::vector<const RowHeader*> drawn(16);
  EXPECT_EQ(test.table.Sample(1, absl::MakeSpan(drawn)), 0u);
  test.Create(IdsFrom(0, 40));
  for (uint64_t id = 0; id < 40; id += 2) test.table.Erase({id});
  std::map<uint64_t, int> draws;
  size_t all = 0;
  for (uint64_t random = 0; random < 1000; ++random) {
    const size_t n = test.table.Sample(random, absl::MakeSpan(drawn));
    EXPECT_GT(n, 2u);
    all += n;
    for (size_t i = 0; i < n; ++i) ++draws[drawn[i]->id];
  }
  EXPECT_GT(all, 10'000u);
  EXPECT_EQ(draws.size(), 20u);
  for (const auto& [id, count] : draws) {
    EXPECT_EQ(id % 2, 1u);
    EXPECT_NEAR(count, static_cast<double>(all) / 20, 150) << id;
  }
}

TEST(RowTableTest, AVisitPassesEachRowOnce) {
  TableForTest test;
  test.Create(IdsFrom(0, 1000));
  test.table.Erase(IdsFrom(300, 100));
  std::map<uint64_t, int> seen;
  uint64_t next = 0;
  const auto see = [&](const RowHeader& row) { ++seen[row.id]; };
  int calls = 1;
  while (test.table.Visit(&next, 64, see)) ++calls;
  EXPECT_GE(calls, 1000 / 64);
  EXPECT_EQ(seen.size(), 900u);
  for (const auto& [id, count] : seen) EXPECT_EQ(count, 1) << id;
}

TEST(RowTableTest, RowsBeyondTheLimitAreRefusedOneByOne) {
  TableForTest test;
  test.Create({10, 20});
  std::vector<RowHeader*> rows(6);
  ASSERT_TRUE(test.table.FindOrCreate({9, 10, 11, 12, 20, 13}, 2, absl::MakeSpan(rows)).ok());
  EXPECT_EQ(rows[0]->id, 9u);
  EXPECT_EQ(rows[1]->id, 10u);
  EXPECT_EQ(rows[2]->id, 11u);
  EXPECT_EQ(rows[3], nullptr);
  EXPECT_EQ(rows[4]->id, 20u);
  EXPECT_EQ(rows[5], nullptr);
  EXPECT_EQ(test.table.rows(), 4u);
}

TEST(RowTableTest, MoreRowsThanNumbersAreRefused) {
  TableForTest test(/*max_numbers=*/100);
  std::vector<uint64_t> ids = IdsFrom(0, 110);
  std::vector<RowHeader*> rows(ids.size());
  const absl::Status status = test.table.FindOrCreate(ids, ids.size(), absl::MakeSpan(rows));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("no numbers for more than its 100 rows"));
  EXPECT_EQ(test.table.rows(), 100u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(rows[i] != nullptr, i < 100) << i;
  // What exists is found all the same, and erased rows make room.
  for (const RowHeader* row : test.Create(IdsFrom(0, 100))) EXPECT_NE(row, nullptr);
  test.table.Erase({50});
  EXPECT_NE(test.Create({105})[0], nullptr);
}

}  // namespace
}  // namespace keelson
