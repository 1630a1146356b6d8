#include "evaluator/dashboard_page.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;

EvaluationRecord Record(int64_t step, double loss, double accuracy) {
  return {step,
          absl::FromUnixSeconds(1'700'000'000 + step),
          {{"accuracy", accuracy}, {"loss", loss}},
          2000,
          0.5};
}

Evaluations ByStep(const std::vector<EvaluationRecord>& records) {
  Evaluations evaluations;
  for (const EvaluationRecord& record : records) evaluations[record.step] = record;
  return evaluations;
}

TEST(DashboardPageTest, ShowsEveryFigureTheNewestFirst) {
  const std::string page =
      EvaluationsAsHtml("/model", ByStep({Record(0, 2.5, 0.125), Record(100, 0.5, 0.75)}));
  EXPECT_THAT(page, HasSubstr("Evaluations of /model"));
  EXPECT_THAT(page, HasSubstr("<th>step</th><th>time</th><th>loss</th><th>accuracy</th>"
                              "<th>examples</th><th>seconds</th>"));
  const size_t newest = page.find(
      "<tr><td>100</td><td>2023-11-14 22:15:00Z</td><td class=\"best\">0.5</td>"
      "<td class=\"best\">0.75</td><td>2000</td><td>0.5</td></tr>");
  const size_t oldest = page.find(
      "<tr><td>0</td><td>2023-11-14 22:13:20Z</td><td>2.5</td>"
      "<td>0.125</td>");
  EXPECT_NE(oldest, std::string::npos) << page;
  EXPECT_LT(newest, oldest) << page;
}

TEST(DashboardPageTest, MarksTheBestOfEachMetric) {
  const std::string page = EvaluationsAsHtml(
      "/model", ByStep({Record(1, 0.5, 0.75), Record(2, 0.25, 0.5), Record(3, 0.25, 0.75)}));
  EXPECT_THAT(page, HasSubstr("best accuracy 0.75 at step 1; best loss 0.25 at step 2"));
  EXPECT_THAT(page, HasSubstr("<td>0.5</td><td class=\"best\">0.75</td>"));  // step 1
  EXPECT_THAT(page, HasSubstr("<td class=\"best\">0.25</td><td>0.5</td>"));  // step 2
  EXPECT_THAT(page, HasSubstr("<td>0.25</td><td>0.75</td>"));                // step 3
}

TEST(DashboardPageTest, WhatIsNotANumberIsNeverTheBest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string page =
      EvaluationsAsHtml("/model", ByStep({Record(1, nan, nan), Record(2, 3, 0.5)}));
  EXPECT_THAT(page, HasSubstr("<td>–</td><td>–</td>"));
  EXPECT_THAT(page, HasSubstr("best loss 3 at step 2"));
  EXPECT_THAT(EvaluationsAsHtml("/model", ByStep({Record(1, nan, nan)})),
              Not(HasSubstr("; best ")));
}

TEST(DashboardPageTest, AMetricThatARecordLacksIsEmpty) {
  EvaluationRecord other = Record(2, 3, 0.5);
  other.metrics = {{"top_5", 0.875}};
  const std::string page = EvaluationsAsHtml("/model", ByStep({Record(1, 4, 0.25), other}));
  EXPECT_THAT(page, HasSubstr("<th>loss</th><th>accuracy</th><th>top_5</th>"));
  EXPECT_THAT(page, HasSubstr("<td></td><td></td><td class=\"best\">0.875</td>"));
}

TEST(DashboardPageTest, EscapesAllText) {
  EvaluationRecord record = Record(1, 4, 0.25);
  record.metrics["<script>\"&'"] = 1;
  const std::string page = EvaluationsAsHtml("/m<b>", ByStep({record}));
  EXPECT_THAT(page, HasSubstr("/m&lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("<th>&lt;script&gt;&quot;&amp;&#39;</th>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
}

TEST(DashboardPageTest, LoadsItselfAnewAndNothingElse) {
  const std::string page = EvaluationsAsHtml("/model", ByStep({Record(1, 4, 0.25)}));
  EXPECT_THAT(page, HasSubstr("<meta http-equiv=\"refresh\""));
  for (const char* outside : {"src=", "url(", "//", "@import", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(DashboardPageTest, SaysThatThereIsNothingYet) {
  const std::string page = EvaluationsAsHtml("/model", {});
  EXPECT_THAT(page, HasSubstr("No snapshot has been evaluated yet."));
  EXPECT_THAT(page, Not(HasSubstr("<table>")));
}

TEST(DashboardPageTest, ShowsTheNewestOfMany) {
  Evaluations many;
  for (int64_t step = 1; step <= 501; ++step) many[step] = Record(step, 1, 1);
  const std::string page = EvaluationsAsHtml("/model", many);
  EXPECT_THAT(page, HasSubstr("Snapshots evaluated: 501;"));
  EXPECT_THAT(page, HasSubstr("the newest 500 are shown"));
  EXPECT_THAT(page, HasSubstr("<tr><td>2</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<tr><td>1</td>")));
  many.erase(1);
  EXPECT_THAT(EvaluationsAsHtml("/model", many), Not(HasSubstr("are shown")));
}

TEST(DashboardPageTest, JsonHasTheRecordsInOrder) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string text =
      EvaluationsAsJson("/mo\"del", ByStep({Record(200, nan, 0.5), Record(100, 4, 0.25)}));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["model_dir"], "/mo\"del");
  ASSERT_EQ(json["evaluations"].size(), 2);
  EXPECT_EQ(json["evaluations"][0].dump(),
            nlohmann::json::parse(FormatEvaluationRecord(Record(100, 4, 0.25))).dump());
  EXPECT_EQ(json["evaluations"][1]["step"], 200);
  EXPECT_TRUE(json["evaluations"][1]["loss"].is_null());
  EXPECT_EQ(EvaluationsAsJson("/m", {}), "{\"model_dir\":\"/m\",\"evaluations\":[]}\n");
}

}  // namespace
}  // namespace keelson
