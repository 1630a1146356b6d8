#include "core/table/row_cut.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/table/row_table_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using Contents = std::map<uint64_t, std::vector<float>>;

std::vector<float> FloatsOf(const TableForTest& test, const RowHeader& row) {
  return {row.values(), row.values() + test.layout.floats()};
}

Contents ContentsOf(TableForTest* test, const std::vector<uint64_t>& ids) {
  Contents contents;
  for (const RowHeader* row : test->Find(ids)) {
    if (row != nullptr) contents[row->id] = FloatsOf(*test, *row);
  }
  return contents;
}

// The rest of what the reader gives, `between` being called before each step.
template <typename Between>
Contents ReadAll(TableForTest* test, size_t step, Between between) {
  RowCutReader reader(&test->table);
  while (reader.Collect(step)) between();
  between();
  reader.Sort();
  Contents contents;
  std::vector<const RowHeader*> rows(step);
  while (true) {
    between();
    const absl::StatusOr<size_t> count = reader.Next(absl::MakeSpan(rows));
    EXPECT_TRUE(count.ok()) << count.status();
    if (!count.ok() || *count == 0) break;
    for (size_t i = 0; i < *count; ++i) {
      EXPECT_TRUE(contents.empty() || contents.rbegin()->first < rows[i]->id);
      contents[rows[i]->id] = FloatsOf(*test, *rows[i]);
    }
  }
  EXPECT_EQ(contents.size(), reader.rows());
  return contents;
}

TEST(RowCutTest, HasTheRowsAsTheyWere) {
  TableForTest test;
  for (RowHeader* row : test.Create(IdsFrom(0, 10))) row->values()[0] = static_cast<float>(row->id);
  const Contents expected = ContentsOf(&test, IdsFrom(0, 20));
  ASSERT_TRUE(test.table.StartCut(1).ok());
  EXPECT_TRUE(test.table.cut_open());
  for (RowHeader* row : test.Create({2, 3, 12})) row->values()[0] = -1;
  test.table.Erase({3, 4, 5});
  for (RowHeader* row : test.Create({4, 13})) row->values()[0] = -2;
  test.table.Erase({4, 12});
  for (RowHeader* row : test.FindForChange({6, 4})) {
    if (row != nullptr) row->values()[0] = -3;
  }
  const Contents now = ContentsOf(&test, IdsFrom(0, 20));
  EXPECT_EQ(ReadAll(&test, 3, [] {}), expected);
  EXPECT_GT(test.table.undo_bytes(), 0u);
  test.table.EndCut();
  EXPECT_EQ(test.table.undo_bytes(), 0u);
  EXPECT_EQ(ContentsOf(&test, IdsFrom(0, 20)), now);
}

TEST(RowCutTest, OfAnEmptyTableIsEmpty) {
  TableForTest test;
  ASSERT_TRUE(test.table.StartCut(1).ok());
  test.Create({1});
  EXPECT_TRUE(ReadAll(&test, 3, [] {}).empty());
}

// Changes before, between and after all steps of the reader.
TEST(RowCutTest, ChangesWhileItIsReadDoNotTouchIt) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    TableForTest test;
    constexpr uint64_t kIds = 2000;
    const auto change = [&] {
      std::vector<uint64_t> ids(random() % 60);
      for (uint64_t& id : ids) id = random() % kIds;
      // At times most rows go, and chunks with them.
      if (random() % 40 == 0) ids = IdsFrom(random() % kIds / 2, kIds / 2);
      if (random() % 2 == 0) {
        test.table.Erase(ids);
      } else {
        for (RowHeader* row : test.Create(ids)) row->values()[random() % 7] += 1;
      }
    };
    for (uint64_t generation = 1; generation < 5; ++generation) {
      for (int i = 0; i < 50; ++i) change();
      const Contents expected = ContentsOf(&test, IdsFrom(0, kIds));
      ASSERT_TRUE(test.table.StartCut(generation).ok());
      ASSERT_EQ(ReadAll(&test, 1 + random() % 300, change), expected) << seed;
      test.table.EndCut();
      while (test.table.Compact(100)) {
      }
    }
  }
}

TEST(RowCutTest, TellsWhichRowsHaveChangedSinceAnEarlierCut) {
  TableForTest test;
  const auto ages = [&] {
    std::map<uint64_t, uint32_t> ages;
    RowCutReader reader(&test.table);
    while (reader.Collect(100)) {
    }
    reader.Sort();
    std::vector<const RowHeader*> rows(100);
    const size_t count = *reader.Next(absl::MakeSpan(rows));
    for (size_t i = 0; i < count; ++i) ages[rows[i]->id] = test.table.AgeOf(*rows[i]);
    return ages;
  };
  test.Create({1, 2, 3});
  ASSERT_TRUE(test.table.StartCut(5).ok());
  test.table.EndCut();
  test.FindForChange({2});
  test.Create({4});
  ASSERT_TRUE(test.table.StartCut(7).ok());
  test.FindForChange({1, 4});
  // 2 and 4 have changed since cut 5, whose distance is 2.
  EXPECT_EQ(ages(), (std::map<uint64_t, uint32_t>{{1, 7}, {2, 2}, {3, 7}, {4, 2}}));
  test.table.EndCut();
}

TEST(RowCutTest, GenerationsAreCountedForEver) {
  TableForTest test;
  test.Create({1, 2});
  uint64_t generation = 0;
  for (int cut = 0; cut < 40000; ++cut) {
    // In steps, and without reading most cuts.
    generation += cut % 1000 == 0 ? 40000 : 1;
    ASSERT_TRUE(test.table.StartCut(generation).ok());
    if (cut % 3 == 0) test.FindForChange({1});
    const RowHeader* const unchanged = test.Find({2})[0];
    // It belongs to every cut, so it must never seem to be new.
    ASSERT_NE(test.table.AgeOf(*unchanged), 0u) << cut;
    if (cut % 5000 == 4999) {
      ASSERT_EQ(ReadAll(&test, 10, [] {}).size(), 2u);
      ASSERT_LE(test.table.AgeOf(*unchanged), RowTable::kMaxAge);
    }
    test.table.EndCut();
  }
}

TEST(RowCutTest, OneAtATimeAndInOrder) {
  TableForTest test;
  ASSERT_TRUE(test.table.StartCut(3).ok());
  EXPECT_EQ(test.table.StartCut(4).code(), absl::StatusCode::kFailedPrecondition);
  test.table.EndCut();
  const absl::Status status = test.table.StartCut(3);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("expected a generation above 3, found 3"));
  EXPECT_FALSE(test.table.cut_open());
  EXPECT_TRUE(test.table.StartCut(4).ok());
}

TEST(RowCutTest, IsIncompleteWhenThereIsNoRoomForImages) {
  TableForTest test(RowSlab::kMaxNumbers, /*max_images=*/2);
  test.Create(IdsFrom(0, 5));
  ASSERT_TRUE(test.table.StartCut(1).ok());
  // Training goes on.
  for (RowHeader* row : test.FindForChange({0, 1, 2})) EXPECT_NE(row, nullptr);
  RowCutReader reader(&test.table);
  while (reader.Collect(10)) {
  }
  reader.Sort();
  std::vector<const RowHeader*> rows(5);
  const absl::Status status = reader.Next(absl::MakeSpan(rows)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("more rows have changed since than the 2"));
  test.table.EndCut();
  // The next cut has room again.
  ASSERT_TRUE(test.table.StartCut(2).ok());
  EXPECT_EQ(ReadAll(&test, 10, [&] { test.FindForChange({0, 1}); }).size(), 5u);
}

TEST(RowCutTest, RowsStayWhereTheyAreWhileItIsOpen) {
  TableForTest test;
  test.Create(IdsFrom(0, 1000));
  for (uint64_t id = 0; id < 1000; id += 2) test.table.Erase({id});
  ASSERT_TRUE(test.table.StartCut(1).ok());
  EXPECT_FALSE(test.table.Compact(1000));
  test.table.EndCut();
  EXPECT_TRUE(test.table.Compact(100));
}

}  // namespace
}  // namespace keelson
