#include "core/scoring/report.h"

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

}  // namespace
}  // namespace keelson
