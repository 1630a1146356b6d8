#include "bench/rows/row_report.h"

#include <string>

#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

RowResult Result(Direction direction, double rows, double redis_rows) {
  RowResult result;
  result.scenario = {"rows-x", direction, IdLaw::kZipf, 16};
  result.rates.rows = {rows, rows, rows};
  result.raw_socket = {2, 2, 2};
  if (redis_rows > 0) {
    result.redis = RowRates{{redis_rows, redis_rows, redis_rows}, {}, {}, 1};
    result.of_redis = {rows / redis_rows, 0, 0};
  }
  return result;
}

const GoalOutcome* Find(const std::vector<GoalOutcome>& goals, const std::string& text) {
  for (const GoalOutcome& goal : goals) {
    if (goal.goal.find(text) != std::string::npos) return &goal;
  }
  return nullptr;
}

TEST(RowReportTest, RatesHaveGoalsAloneAndBesideRedis) {
  RowResults results;
  results.results = {Result(Direction::kPull, 4.5, 1.6), Result(Direction::kPush, 2.9, 0.3),
                     Result(Direction::kPushPull, 2, 0)};
  const std::vector<GoalOutcome> goals = CheckRowGoals(results);
  ASSERT_EQ(goals.size(), 5u);
  EXPECT_TRUE(goals[0].met);
  EXPECT_FALSE(goals[1].met);  // 2.8 times as fast as Redis
  EXPECT_FALSE(goals[2].met);  // 2.9 million pushed
  EXPECT_TRUE(goals[3].met);
  EXPECT_TRUE(goals[4].met);
}

TEST(RowReportTest, OneIdInEveryExampleIsComparedWithUniformIds) {
  RowResults results;
  results.results = {Result(Direction::kPushPull, 4, 0), Result(Direction::kPushPull, 3.1, 0)};
  for (RowResult& result : results.results) result.scenario.workers = 4;
  results.results[0].scenario.law = IdLaw::kUniform;
  results.results[1].scenario.law = IdLaw::kHot;
  const std::vector<GoalOutcome> goals = CheckRowGoals(results);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_FALSE(goals[0].met);
  EXPECT_DOUBLE_EQ(goals[0].found, 3.1 / 4);
}

TEST(RowReportTest, BytesSnapshotsAndIdleServersHaveGoals) {
  RowResults results;
  results.bytes = {{"f32", {72.1, 72.2, 8.2}}, {"bf16", {44, 40, 8.2}}};
  RowSnapshotResult& snapshot = results.snapshot.emplace();
  snapshot.longest_cut_microseconds = 2100;
  snapshot.ratio = {0.9, 0.8, 1};
  snapshot.write = {0.3, 0.3, 0.3};
  snapshot.plain_write = {0.4, 0.4, 0.4};
  snapshot.resident = 1000;
  snapshot.more_resident = 260;
  snapshot.restore_per_core = {3.5, 3, 4};
  snapshot.delta_bytes = {0.016, 0.016, 0.016};
  snapshot.delta_seconds = {0.09, 0.08, 0.11};
  results.expiry = RowExpiryResult{100, 90, 10, 20, 23, 960, 1000};
  results.idle = 0.002;
  const std::vector<GoalOutcome> goals = CheckRowGoals(results);
  EXPECT_TRUE(Find(goals, "f32, push")->met);
  EXPECT_FALSE(Find(goals, "bf16, push")->met);
  EXPECT_TRUE(Find(goals, "bf16, pull")->met);
  EXPECT_TRUE(Find(goals, "without a row")->met);
  EXPECT_FALSE(Find(goals, "longest cut")->met);
  EXPECT_TRUE(Find(goals, "during / before")->met);
  EXPECT_TRUE(Find(goals, "plain file")->met);
  EXPECT_FALSE(Find(goals, "more memory")->met);
  EXPECT_TRUE(Find(goals, "restore")->met);
  EXPECT_FALSE(Find(goals, "bytes / whole")->met);
  EXPECT_TRUE(Find(goals, "time / whole")->met);
  EXPECT_TRUE(Find(goals, "idle server")->met);
  EXPECT_FALSE(Find(goals, "expiry: p99")->met);
  EXPECT_TRUE(Find(goals, "expiry: memory")->met);
  EXPECT_EQ(goals.size(), 15u);
}

TEST(RowReportTest, JsonHasWhatWasMeasured) {
  RowResults results;
  results.results = {Result(Direction::kPull, 4.5, 0)};
  const nlohmann::json json = RowJson(results, CheckRowGoals(results));
  EXPECT_EQ(json.at("goals").size(), 1u);
  EXPECT_EQ(json.at("rates").at(0).at("mrows_per_s").at("median"), 4.5);
  EXPECT_FALSE(json.at("rates").at(0).contains("of_redis"));
  EXPECT_FALSE(json.contains("snapshot"));
}

TEST(RowReportTest, TablesWithoutRowsAreEmpty) {
  for (const Table& table : RowTables(RowResults())) EXPECT_TRUE(table.rows.empty());
}

}  // namespace
}  // namespace keelson::bench
