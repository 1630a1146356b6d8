#include "core/cluster/table_totals.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

void Add(const std::string& name, int64_t rows, TablePartStatuses* shard) {
  v1::TablePartStatus* const table = shard->Add();
  table->set_name(name);
  table->set_rows(rows);
  table->set_bytes(100 * rows);
  table->set_refused_rows(rows / 10);
}

TEST(TableTotalsTest, AddUpTheShards) {
  TablePartStatuses first, second;
  Add("users", 30, &first);
  Add("items", 0, &first);
  Add("users", 10, &second);
  Add("items", 0, &second);
  TableTotals sums;
  sums.AddShard(first);
  sums.AddShard(second);
  sums.AddShard({});
  const std::vector<TableTotal> totals = sums.totals();
  ASSERT_EQ(totals.size(), 2);
  EXPECT_EQ(totals[0].table.name(), "users");
  EXPECT_EQ(totals[0].table.rows(), 40);
  EXPECT_EQ(totals[0].table.bytes(), 4000);
  EXPECT_EQ(totals[0].table.refused_rows(), 4);
  EXPECT_EQ(totals[0].balance, 1.5);
  EXPECT_EQ(totals[1].table.name(), "items");
  EXPECT_EQ(totals[1].table.rows(), 0);
  EXPECT_EQ(totals[1].balance, 1);
}

TEST(TableTotalsTest, HaveTheHottestIdsOfAllShards) {
  TableTotals sums;
  for (uint64_t shard = 0; shard < 3; ++shard) {
    TablePartStatuses tables;
    v1::TablePartStatus* const table = tables.Add();
    table->set_name("users");
    table->set_looked_up(5);
    for (uint64_t i = 0; i < 8; ++i) {
      v1::TablePartStatus::HotId* const hot = table->add_hottest();
      hot->set_id(8 * shard + i);
      hot->set_pushes(static_cast<int64_t>(100 * shard + 10 - i));
    }
    sums.AddShard(tables);
  }
  const std::vector<TableTotal> totals = sums.totals();
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals[0].table.looked_up(), 15);
  ASSERT_EQ(totals[0].table.hottest_size(), TableTotals::kMostHot);
  EXPECT_EQ(totals[0].table.hottest(0).id(), 16u);
  EXPECT_EQ(totals[0].table.hottest(7).id(), 23u);
  EXPECT_EQ(totals[0].table.hottest(8).id(), 8u);
}

}  // namespace
}  // namespace keelson
