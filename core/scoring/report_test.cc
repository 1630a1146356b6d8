#include "core/scoring/report.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

TEST(ReportTest, NamesThatAreNotUtf8AreReplaced) {
  EvaluationReport report;
  report.step = 7;
  report.time = absl::FromUnixMicros(1'500'000);
  report.classes = {"a\xff"};
  const auto json =
      nlohmann::json::parse(FormatReport(report), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["time"], 1.5);
  EXPECT_EQ(json["classes"][0], "a\xef\xbf\xbd");
}

TEST(ReportTest, ExamplesHaveTheirFeaturesByName) {
  EvaluationReport report;
  report.loss = LossKind::kMeanSquaredError;
  report.features = {{.name = "price", .shape = Shape({2})},
                     {.name = "user", .kind = FeatureKind::kId},
                     {.name = "seen", .kind = FeatureKind::kBag, .weighted = true},
                     {.name = "shown", .kind = FeatureKind::kBag}};
  WrongExample& example = report.wrong.emplace_back();
  example.features = {{.numbers = {0.5f, NAN}, .count = 2},
                      {.ids = {UINT64_MAX}, .count = 1},
                      {.ids = {3, 4}, .weights = {1, 0.25f}, .count = 70},
                      {}};
  const auto json =
      nlohmann::json::parse(FormatReport(report), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(json["wrong"][0]["features"],
            nlohmann::json::parse(
                R"([{"name": "price", "count": 2, "numbers": [0.5, null]},
                    {"name": "user", "count": 1, "ids": ["18446744073709551615"]},
                    {"name": "seen", "count": 70, "ids": ["3", "4"], "weights": [1.0, 0.25]},
                    {"name": "shown", "count": 0, "ids": []}])"));
}

TEST(ReportTest, ExamplesHaveTheColumnsOfTheirFile) {
  EvaluationReport report;
  report.loss = LossKind::kSigmoidCrossEntropy;
  WrongExample& example = report.wrong.emplace_back();
  example.columns = {{"city", {"Rome"}},
                     {"age", {}},
                     {"tags", std::vector<std::string>(40, "a")},
                     {"text", {std::string(300, 'x')}}};
  const auto json =
      nlohmann::json::parse(FormatReport(report), nullptr, /*allow_exceptions=*/false);
  const nlohmann::json& columns = json["wrong"][0]["columns"];
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(columns[0], nlohmann::json({{"name", "city"}, {"count", 1}, {"texts", {"Rome"}}}));
  EXPECT_EQ(columns[1],
            nlohmann::json({{"name", "age"}, {"count", 0}, {"texts", nlohmann::json::array()}}));
  EXPECT_EQ(columns[2]["count"], 40);
  EXPECT_EQ(columns[2]["texts"].size(), 32u);
  EXPECT_EQ(columns[3]["texts"][0], std::string(200, 'x'));
}

TEST(ReportTest, RetrievalSaysHowManyItemsAndQueries) {
  EvaluationReport report;
  report.loss = LossKind::kInBatchSoftmax;
  report.retrieval = {{{"recall@10", "ndcg@10"}, 500, 2000}, {{"hit_rate@5"}, 499, 100}};
  const auto json =
      nlohmann::json::parse(FormatReport(report), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(json["kind"], "retrieval");
  EXPECT_EQ(json["retrieval"],
            nlohmann::json::parse(
                R"([{"metrics": ["recall@10", "ndcg@10"], "items": 500, "queries": 2000},
                    {"metrics": ["hit_rate@5"], "items": 499, "queries": 100}])"));
}

}  // namespace
}  // namespace keelson
