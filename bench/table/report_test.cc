#include "bench/table/report.h"

#include <string>
#include <vector>

#include "bench/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

using ::testing::HasSubstr;

TableBenchResults Results() {
  const nlohmann::json growth = {{"insert", 5.0},      {"over_mean", 27.0},
                                 {"over_worst", 30.0}, {"over_end", 26.0},
                                 {"own_mean", 25.0},   {"own_worst", 31.0},
                                 {"own_end", 25.0},    {"find_half", {9.0, 10.0, 11.0}},
                                 {"find_hits", {8.0}}, {"find_zipf", {12.0}}};
  TableBenchResults results;
  results.dim32 = results.dim16 = {{"Keelson", {growth, growth}}, {"another", {}}};
  results.longest = {{"longest_ms", 0.5}, {"longest_preempted_ms", 7.0}};
  results.threads = {{"find_half", {{9.0}, {18.0}}}, {"find_hits", {{8.0}, {16.0}}}};
  for (const char* name : {"adagrad", "row-wise adagrad", "ftrl"}) {
    results.updates[name] = {{5.0}, {9.5}};
  }
  results.array16 = {{"find", {11.0}}, {"array", {22.0}}, {"ratio", {0.5}}};
  return results;
}

TEST(TableBenchReportTest, JudgesTheGoals) {
  std::vector<std::string> missed;
  for (const TableGoal& goal : TableGoals(Results())) {
    if (!goal.met()) missed.push_back(goal.goal);
  }
  EXPECT_EQ(missed, (std::vector<std::string>{"  of random reads of an array",
                                              "update, row-wise adagrad, 10^6 rows/s", "  worst"}));
}

TEST(TableBenchReportTest, NamesAbsentTables) {
  std::string text;
  for (const Table& table : TablesOf(Results(), TableGoals(Results()))) {
    text += Render(table, TableStyle::kText);
  }
  EXPECT_THAT(text, HasSubstr("10.0 (9.0-11.0)"));
  EXPECT_THAT(text, ::testing::ContainsRegex("another +absent"));
  const nlohmann::json json = ToJson(Results(), TableGoals(Results()));
  EXPECT_EQ(json["dim32"][1]["absent"], true);
  EXPECT_EQ(json["goals"][0]["found"], 10.0);
}

}  // namespace
}  // namespace keelson::bench
