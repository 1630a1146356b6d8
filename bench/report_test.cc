#include "bench/report.h"

#include <set>

#include "bench/goals.h"
#include "gmock/gmock.h"

namespace keelson::bench {
namespace {

using testing::HasSubstr;

RunResult RunOf(double calls, double pushed, double pulled) {
  RunResult run;
  run.report.clients.push_back({calls, pushed, pulled});
  run.report.latencies.Record(100e-6);
  run.client_cpu = 0.5;
  run.server_cpu = 1;
  return run;
}

// 2 GB/s pushed, beside a raw socket of 4 and a baseline of 1.
Result ExampleResult() {
  Result result;
  result.scenario.name = "message-4MB";
  result.scenario.direction = Direction::kPush;
  result.message_bytes = 4194304;
  result.measured = Summarize({RunOf(500, 2e9, 0), RunOf(400, 1e9, 0), RunOf(600, 3e9, 0)});
  result.baseline = Summarize({RunOf(250, 1e9, 0)});
  result.limits.raw_socket = Summarize({RunOf(1000, 4e9, 0)});
  result.limits.empty_rpc = Summarize({RunOf(10000, 0, 0)});
  return result;
}

TEST(SummarizeTest, MedianOfRepetitions) {
  const Measured measured = ExampleResult().measured;
  EXPECT_DOUBLE_EQ(measured.push.median, 2);
  EXPECT_DOUBLE_EQ(measured.goodput.min, 1);
  EXPECT_DOUBLE_EQ(measured.goodput.max, 3);
  EXPECT_DOUBLE_EQ(measured.calls.median, 500);
  EXPECT_DOUBLE_EQ(measured.client_cpu.median, 0.25);
  EXPECT_DOUBLE_EQ(measured.cpu(), 0.75);
}

TEST(SummarizeTest, GoodputIsPerDirectionAndCpuOfBoth) {
  const Measured measured = Summarize({RunOf(1, 1e9, 3e9)});
  EXPECT_DOUBLE_EQ(measured.goodput.median, 2);
  EXPECT_DOUBLE_EQ(measured.cpu(), 1.5 / 4);
}

TEST(SummarizeTest, FairnessIsFastestBySlowest) {
  RunResult run = RunOf(10, 1, 1);
  run.report.clients.push_back({25, 1, 1});
  EXPECT_DOUBLE_EQ(Summarize({run}).unfairness, 2.5);
}

TEST(JsonReportTest, HasExactlyTheKeysOfTheDocumentation) {
  const nlohmann::json report = JsonReport({ExampleResult()});
  ASSERT_EQ(report.size(), 1);
  std::set<std::string> keys;
  for (const auto& [key, value] : report[0].items()) keys.insert(key);
  EXPECT_EQ(keys,
            (std::set<std::string>{"scenario", "direction", "handler", "wire", "message_bytes",
                                   "servers", "workers", "gbytes_per_s", "rpcs_per_s", "p50_us",
                                   "p99_us", "cpu_s_per_gbyte", "raw_socket_gbytes_per_s",
                                   "naive_gbytes_per_s", "empty_rpc_p50_us"}));
  EXPECT_EQ(report[0]["scenario"], "message-4MB");
  EXPECT_EQ(report[0]["direction"], "push");
  EXPECT_EQ(report[0]["message_bytes"], 4194304);
  EXPECT_EQ(report[0]["gbytes_per_s"], 2.0);
  EXPECT_EQ(report[0]["raw_socket_gbytes_per_s"], 4.0);
  EXPECT_NEAR(report[0]["p50_us"].get<double>(), 100, 2);
}

TEST(TableTest, AlignsTextAndMarkdown) {
  const Table table{"T", {"name", "n"}, {{"a", "1"}, {"long name", "20"}}};
  EXPECT_EQ(Render(table, TableStyle::kText),
            "T\n"
            "name        n\n"
            "a           1\n"
            "long name  20\n\n");
  EXPECT_EQ(Render(table, TableStyle::kMarkdown),
            "### T\n\n"
            "| name      |  n |\n"
            "| --------- | --:|\n"
            "| a         |  1 |\n"
            "| long name | 20 |\n\n");
  EXPECT_EQ(Render({"T", {"name"}, {}}, TableStyle::kText), "");
}

TEST(TableTest, ResultsStandBesideTheirLimits) {
  const std::string text = Render(ResultTable({ExampleResult()}), TableStyle::kText);
  EXPECT_THAT(text, HasSubstr("message-4MB push sgd f32"));
  EXPECT_THAT(text, HasSubstr("2.00 (1.00-3.00)"));
  EXPECT_THAT(text, HasSubstr("0.50x"));  // of raw
  EXPECT_THAT(text, HasSubstr("2.00x"));  // of naive
  EXPECT_EQ(Render(FairnessTable({ExampleResult()}), TableStyle::kText), "");
  EXPECT_EQ(Render(MemoryTable({ExampleResult()}), TableStyle::kText), "");
}

TEST(ScalingCsvTest, OneLinePerResult) {
  EXPECT_EQ(ScalingCsv({ExampleResult()}),
            "servers,workers,direction,gbytes_per_s,min,max,cpu_s_per_gbyte,"
            "raw_socket_gbytes_per_s\n"
            "1,1,push,2.0000,1.0000,3.0000,0.7500,4.0000\n");
}

TEST(GoalsTest, ChecksWhatWasRun) {
  const std::vector<GoalOutcome> outcomes = CheckGoals({ExampleResult()}, std::nullopt);
  ASSERT_EQ(outcomes.size(), 4);
  EXPECT_EQ(outcomes[0].goal, "message-4MB push sgd / raw socket");
  EXPECT_EQ(outcomes[0].wanted, ">= 0.80");
  EXPECT_DOUBLE_EQ(outcomes[0].found, 0.5);
  EXPECT_FALSE(outcomes[0].met);
  EXPECT_DOUBLE_EQ(outcomes[2].found, 2);  // of naive
  EXPECT_TRUE(CheckGoals({}, std::nullopt).empty());
}

TEST(GoalsTest, IdleIsPerCent) {
  const std::vector<GoalOutcome> outcomes = CheckGoals({}, IdleCpu{0.002, 0.02});
  ASSERT_EQ(outcomes.size(), 2);
  EXPECT_TRUE(outcomes[0].met);
  EXPECT_DOUBLE_EQ(outcomes[0].found, 0.2);
  EXPECT_FALSE(outcomes[1].met);
}

}  // namespace
}  // namespace keelson::bench
