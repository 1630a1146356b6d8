#include "core/table/row_changes.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "core/table/row_cut.h"
#include "core/table/row_table_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using Contents = std::map<uint64_t, std::vector<float>>;

class RowChangesTest : public testing::Test {
 protected:
  void Start(uint64_t most_erased = RowChanges::kMostErased) {
    test_ = std::make_unique<TableForTest>(RowSlab::kMaxNumbers, RowSlab::kMaxNumbers, most_erased);
  }

  RowTable& table() { return test_->table; }

  Contents All() const {
    Contents contents;
    for (const RowHeader* row : test_->Find(IdsFrom(0, kIds))) {
      if (row != nullptr) contents[row->id] = {row->values(), row->values() + 3};
    }
    return contents;
  }

  void Add(const std::vector<uint64_t>& ids) {
    for (RowHeader* row : test_->Create(ids)) row->values()[0] += 1;
  }

  // Makes the rows of an earlier cut those of the newest one, which is open; `between` is called
  // between the reader's steps.
  template <typename Between>
  void Advance(uint64_t base, const ChangesSince& changes, Contents* contents, Between between) {
    for (const auto& ids : changes.erased) {
      for (const uint64_t id : *ids) contents->erase(id);
    }
    RowCutReader reader(&table(), base);
    while (reader.Collect(50)) between();
    reader.Sort();
    ASSERT_EQ(static_cast<int64_t>(reader.rows()), changes.rows);
    std::vector<const RowHeader*> rows(20);
    while (true) {
      between();
      const absl::StatusOr<size_t> count = reader.Next(absl::MakeSpan(rows));
      ASSERT_TRUE(count.ok()) << count.status();
      if (*count == 0) return;
      for (size_t i = 0; i < *count; ++i) {
        (*contents)[rows[i]->id] = {rows[i]->values(), rows[i]->values() + 3};
      }
    }
  }

  // Changes, erasures, also of rows that are made again, and cuts, some of whose snapshots fail, so
  // that later ones build on an earlier cut; generations rise by `step` at most.
  void BuildsOnEarlierCuts(uint64_t seed, uint64_t step) {
    std::mt19937_64 random(seed);
    Start();
    const auto change = [&] {
      std::vector<uint64_t> ids(random() % 40);
      for (uint64_t& id : ids) id = random() % kIds;
      random() % 2 == 0 ? (void)table().Erase(ids) : Add(ids);
    };
    uint64_t generation = 1 + random() % step, base = generation;
    for (int i = 0; i < 20; ++i) change();
    ASSERT_TRUE(table().StartCut(generation).ok());
    table().KeepChanges();
    Contents stored = All();
    table().EndCut();
    for (int cut = 0; cut < 40; ++cut) {
      for (size_t i = random() % 20; i > 0; --i) change();
      generation += 1 + random() % step;
      ASSERT_TRUE(table().StartCut(generation).ok());
      const std::optional<ChangesSince> changes = table().ChangesFrom(base);
      ASSERT_EQ(changes.has_value(), generation - base < RowTable::kMaxAge);
      const Contents now = All();
      if (!changes.has_value()) {
        table().KeepChanges();
        base = generation;
        stored = now;
        table().EndCut();
        continue;
      }
      Contents advanced = stored;
      Advance(base, *changes, &advanced, change);
      ASSERT_EQ(advanced, now) << seed << " cut " << cut;
      table().EndCut();
      if (random() % 3 == 0) continue;  // its snapshot fails
      base = generation;
      stored = now;
      table().ForgetChangesBefore(base);
    }
  }

  static constexpr uint64_t kIds = 500;
  std::unique_ptr<TableForTest> test_;
};

TEST_F(RowChangesTest, MakeOfAnEarlierCutALaterOne) {
  for (uint64_t seed = 0; seed < 40; ++seed) BuildsOnEarlierCuts(seed, 1);
}

// The generation that a row carries has 14 bits.
TEST_F(RowChangesTest, OutliveTheEndOfTheNumbersThatRowsCarry) {
  for (uint64_t seed = 0; seed < 40; ++seed) BuildsOnEarlierCuts(seed, 3000);
  for (uint64_t seed = 0; seed < 10; ++seed) BuildsOnEarlierCuts(seed, 20000);
}

TEST_F(RowChangesTest, AreNotKnownBeforeTheyAreKept) {
  Start();
  Add({1});
  ASSERT_TRUE(table().StartCut(1).ok());
  EXPECT_FALSE(table().ChangesFrom(1).has_value());
  table().EndCut();
  table().Erase({1});
  EXPECT_EQ(table().erased_bytes(), 0u);
  ASSERT_TRUE(table().StartCut(2).ok());
  table().KeepChanges();
  table().EndCut();
  ASSERT_TRUE(table().StartCut(3).ok());
  EXPECT_FALSE(table().ChangesFrom(1).has_value());
  EXPECT_TRUE(table().ChangesFrom(2).has_value());
  EXPECT_FALSE(table().ChangesFrom(4).has_value());
}

TEST_F(RowChangesTest, HaveNoErasedIdThatHasARowAgain) {
  Start();
  Add(IdsFrom(0, 10));
  ASSERT_TRUE(table().StartCut(1).ok());
  table().KeepChanges();
  table().EndCut();
  Add({1, 11});
  table().Erase({1, 2, 3, 11});
  Add({2, 3});
  table().Erase({3, 3});
  ASSERT_TRUE(table().StartCut(2).ok());
  const ChangesSince changes = table().ChangesFrom(1).value();
  EXPECT_EQ(changes.rows, 1);  // 2
  ASSERT_EQ(changes.erased.size(), 1u);
  EXPECT_EQ(std::set<uint64_t>(changes.erased[0]->begin(), changes.erased[0]->end()),
            (std::set<uint64_t>{1, 3, 11}));
  EXPECT_EQ(changes.num_erased(), 3);
}

TEST_F(RowChangesTest, OfTooManyErasedIdsAreForgotten) {
  Start(/*most_erased=*/5);
  Add(IdsFrom(0, 20));
  ASSERT_TRUE(table().StartCut(1).ok());
  table().KeepChanges();
  table().EndCut();
  table().Erase(IdsFrom(0, 5));
  ASSERT_TRUE(table().StartCut(2).ok());
  const std::optional<ChangesSince> changes = table().ChangesFrom(1);
  ASSERT_TRUE(changes.has_value());
  table().EndCut();
  table().Erase({6});
  // The cut that has begun keeps what it has.
  EXPECT_EQ(changes->num_erased(), 5);
  EXPECT_EQ(table().erased_bytes(), 0u);
  ASSERT_TRUE(table().StartCut(3).ok());
  EXPECT_FALSE(table().ChangesFrom(1).has_value());
  EXPECT_FALSE(table().ChangesFrom(2).has_value());
}

TEST_F(RowChangesTest, OfTooManyCutsAreForgotten) {
  Start();
  uint64_t generation = 1;
  ASSERT_TRUE(table().StartCut(generation).ok());
  table().KeepChanges();
  for (size_t i = 0; i + 1 < RowChanges::kMostGenerations; ++i) {
    table().EndCut();
    ASSERT_TRUE(table().StartCut(++generation).ok());
    EXPECT_TRUE(table().ChangesFrom(1).has_value());
  }
  table().EndCut();
  ASSERT_TRUE(table().StartCut(++generation).ok());
  EXPECT_FALSE(table().ChangesFrom(1).has_value());
}

TEST_F(RowChangesTest, TakeMemoryForErasedIdsUntilTheirCutIsForgotten) {
  Start();
  Add(IdsFrom(0, 100));
  ASSERT_TRUE(table().StartCut(1).ok());
  table().KeepChanges();
  table().EndCut();
  table().Erase(IdsFrom(0, 100));
  EXPECT_GE(table().erased_bytes(), 900u);
  ASSERT_TRUE(table().StartCut(2).ok());
  table().ForgetChangesBefore(2);
  EXPECT_EQ(table().erased_bytes(), 0u);
}

}  // namespace
}  // namespace keelson
