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
  EXPECT_EQ(totals[0].name, "users");
  EXPECT_EQ(totals[0].rows, 40);
  EXPECT_EQ(totals[0].bytes, 4000);
  EXPECT_EQ(totals[0].refused_rows, 4);
  EXPECT_EQ(totals[0].balance, 1.5);
  EXPECT_EQ(totals[1].name, "items");
  EXPECT_EQ(totals[1].rows, 0);
  EXPECT_EQ(totals[1].balance, 1);
}

}  // namespace
}  // namespace keelson
