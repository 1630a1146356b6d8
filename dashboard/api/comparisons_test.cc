#include "dashboard/api/comparisons.h"

#include <gmock/gmock.h>

#include <cmath>

#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

using ComparisonsTest = DashboardApiTest;

TEST_F(ComparisonsTest, WhatDiffersBetweenTwoSnapshots) {
  files().CommitSnapshot(100, 3);
  files().CommitSnapshot(200, 4);
  files().Append("eval/metrics.jsonl",
                 EvaluationLine(100, 1.7e9, 0.5, 0.75) + EvaluationLine(200, 1.7e9 + 1, 0.25, 0.5));
  const Json json = Get("/runs/mnist/snapshots/compare?a=100&b=200");
  EXPECT_EQ(json["a"], 100);
  EXPECT_EQ(json["b"], 200);
  EXPECT_EQ(json["metrics"],
            Json({{{"name", "accuracy"}, {"a", 0.75}, {"b", 0.5}, {"change", -0.25}},
                  {{"name", "loss"}, {"a", 0.5}, {"b", 0.25}, {"change", -0.25}}}));
  ASSERT_EQ(json["variables"].size(), 2u);
  const Json& kernel = json["variables"][0];
  EXPECT_EQ(kernel["name"], "scores/kernel");
  EXPECT_EQ(kernel["shape"], Json({2, 2}));
  EXPECT_DOUBLE_EQ(kernel["norm_a"], std::sqrt(18.0));
  EXPECT_DOUBLE_EQ(kernel["norm_b"], std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(kernel["norm_change"], std::sqrt(2.0));
  EXPECT_EQ(kernel["max_change"], 1.0);
  EXPECT_DOUBLE_EQ(kernel["relative_change"], 1.0 / 3);
  EXPECT_EQ(json["variables"][1]["name"], "scores/bias");
  EXPECT_EQ(json["variables"][1]["relative_change"], 0.0);
  // Again, from what was kept: the files are not read.
  const int64_t read = memory_.bytes_read();
  EXPECT_EQ(Get("/runs/mnist/snapshots/compare?a=100&b=200"), json);
  EXPECT_EQ(memory_.bytes_read(), read);
}

TEST_F(ComparisonsTest, ASnapshotThatIsDeletedIsComparedByItsMetrics) {
  files().CommitSnapshot(200, 1);
  files().Append("eval/metrics.jsonl",
                 EvaluationLine(100, 1.7e9, 0.5, 0.9) + EvaluationLine(200, 1.7e9 + 1, 0.4, 0.8));
  const Json json = Get("/runs/mnist/snapshots/compare?a=100&b=200");
  EXPECT_EQ(json["metrics"].size(), 2u);
  EXPECT_FALSE(json.contains("variables"));
}

TEST_F(ComparisonsTest, ADamagedSnapshotIsComparedByItsMetrics) {
  files().CommitSnapshot(100, 1);
  files().CommitSnapshot(200, 1);
  files().Write("model.ckpt-100.index", "damaged");
  const Json json = Get("/runs/mnist/snapshots/compare?a=100&b=200");
  EXPECT_FALSE(json.contains("variables"));
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("/jobs/mnist/model.ckpt-100"));
}

TEST_F(ComparisonsTest, StepsThatCannotBeCompared) {
  files().CommitSnapshot(100, 1);
  const std::string path = "/api/v1/runs/mnist/snapshots/compare";
  EXPECT_EQ(Error(400, Ask("GET", path)), "a: expected a step, found none");
  EXPECT_EQ(Error(400, Ask("GET", path + "?a=100")), "b: expected a step, found none");
  EXPECT_THAT(Error(400, Ask("GET", path + "?a=100&b=-1")), HasSubstr("b: expected 0 to "));
  EXPECT_THAT(Error(404, Ask("GET", path + "?a=100&b=7")), HasSubstr("no such snapshot"));
}

}  // namespace
}  // namespace keelson
