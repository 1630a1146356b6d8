#include "cli/data/column_summary.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ColumnSummaryTest, CountsAndMoments) {
  ColumnSummary column;
  for (const char* text : {"1", "2", "2", "", "7"}) column.Add(ColumnValue::Text(text));
  column.Add(ColumnValue());
  EXPECT_EQ(column.rows(), 6);
  EXPECT_EQ(column.missing(), 2);
  EXPECT_EQ(column.values(), 4);
  EXPECT_EQ(column.distinct(), 3u);
  EXPECT_TRUE(column.distinct_is_exact());
  EXPECT_TRUE(column.all_whole());
  EXPECT_FALSE(column.has_lists());
  EXPECT_EQ(column.min(), 1);
  EXPECT_EQ(column.max(), 7);
  EXPECT_EQ(column.mean(), 3);
  EXPECT_DOUBLE_EQ(column.Deviation(), std::sqrt(22.0 / 4));
  EXPECT_EQ(column.Quantile(0), 1);
  EXPECT_EQ(column.Quantile(0.5), 2);
  EXPECT_EQ(column.Quantile(1), 7);
  EXPECT_THAT(column.LogMoments().first,
              DoubleNear((std::log(2.0) + 2 * std::log(3.0) + std::log(8.0)) / 4, 1e-12));
  EXPECT_THAT(column.Frequent(2), ElementsAre(Pair("2", 2), Pair("1", 1)));
}

TEST(ColumnSummaryTest, KindsOfValues) {
  ColumnSummary fractions, texts, lists, none;
  for (const char* text : {"1", "2.5"}) fractions.Add(ColumnValue::Text(text));
  EXPECT_TRUE(fractions.all_numbers());
  EXPECT_FALSE(fractions.all_whole());
  for (const char* text : {"1", "a"}) texts.Add(ColumnValue::Text(text));
  EXPECT_FALSE(texts.all_numbers());
  const std::vector<int64_t> two = {5, -5};
  lists.Add(ColumnValue::Integers(two));
  EXPECT_TRUE(lists.has_lists());
  EXPECT_EQ(lists.values(), 2);
  EXPECT_THAT(lists.Frequent(9), ElementsAre(Pair("-5", 1), Pair("5", 1)));
  none.Add(ColumnValue());
  EXPECT_FALSE(none.all_numbers());
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.Quantile(0.5), 0);
  EXPECT_EQ(none.LogMoments(), std::make_pair(0.0, 0.0));
}

TEST(ColumnSummaryTest, MoreValuesThanAreToldApart) {
  ColumnSummary column;
  for (size_t i = 0; i < ColumnSummary::kMostValues; ++i) {
    column.Add(ColumnValue::Text(absl::StrCat(i)));
  }
  EXPECT_TRUE(column.distinct_is_exact());
  column.Add(ColumnValue::Text("0"));
  EXPECT_TRUE(column.distinct_is_exact());
  column.Add(ColumnValue::Text("-1"));
  EXPECT_FALSE(column.distinct_is_exact());
  EXPECT_EQ(column.distinct(), ColumnSummary::kMostValues);
  // Four deviations of the share in a sample of 10,000.
  EXPECT_THAT(column.Quantile(0.5) / ColumnSummary::kMostValues, DoubleNear(0.5, 4 * 0.005));
}

}  // namespace
}  // namespace keelson
