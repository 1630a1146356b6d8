#include "core/metrics/text_format.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/metrics/exposition_testing.h"

namespace keelson {
namespace {

TEST(FormatAsText, WritesFamiliesByName) {
  MetricPage page;
  page.Gauge("members", "Members by role.").Add(2, {{"role", "worker"}, {"state", "alive"}});
  page.Counter("bytes_total", "Bytes.").Add(12345678901);
  page.Gauge("members", "Members by role.").Add(1, {{"role", "ps"}, {"state", "lost"}});
  EXPECT_EQ(FormatAsText(page),
            "# HELP bytes_total Bytes.\n"
            "# TYPE bytes_total counter\n"
            "bytes_total 12345678901\n"
            "# HELP members Members by role.\n"
            "# TYPE members gauge\n"
            "members{role=\"worker\",state=\"alive\"} 2\n"
            "members{role=\"ps\",state=\"lost\"} 1\n");
}

TEST(FormatAsText, EscapesHelpAndLabels) {
  MetricPage page;
  page.Gauge("g", "C:\\ and\n\"quotes\"").Add(1, {{"path", "C:\\ and\n\"quotes\""}});
  const std::string text = FormatAsText(page);
  EXPECT_EQ(text,
            "# HELP g C:\\\\ and\\n\"quotes\"\n"
            "# TYPE g gauge\n"
            "g{path=\"C:\\\\ and\\n\\\"quotes\\\"\"} 1\n");
  EXPECT_TRUE(ParseExposition(text).ok());
}

TEST(FormatAsText, WritesNumbersThatReadBackTheSame) {
  MetricPage page;
  const std::vector<double> values = {0,       -1,      0.1,          1.0 / 3, 1e-300,   1e300,
                                      1048576, 1 << 30, 1732000000.5, -0.25,   INFINITY, -INFINITY};
  for (size_t i = 0; i < values.size(); ++i) {
    page.Gauge("g", "Numbers.").Add(values[i], {{"i", std::to_string(i)}});
  }
  const absl::StatusOr<Exposition> read = ParseExposition(FormatAsText(page));
  ASSERT_TRUE(read.ok()) << read.status();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(read->samples.at("g{i=\"" + std::to_string(i) + "\"}"), values[i]);
  }
}

TEST(FormatAsText, WritesWhatIsNotANumber) {
  MetricPage page;
  page.Gauge("g", "Loss.").Add(NAN);
  EXPECT_THAT(FormatAsText(page), ::testing::EndsWith("\ng NaN\n"));
}

TEST(FormatAsText, BucketsAreCumulativeAndEndWithInf) {
  MetricPage page;
  MetricFamily& family = page.Histogram("staleness", "Staleness.");
  family.Add({{0, 1, 2.5}, {5, 0, 2, 1}, 13}, {{"worker", "0"}});
  family.Add({{0, 1, 2.5}, {0, 0, 0, 0}, 0}, {{"worker", "1"}});
  const std::string text = FormatAsText(page);
  EXPECT_THAT(text, ::testing::HasSubstr("staleness_bucket{worker=\"0\",le=\"0\"} 5\n"
                                         "staleness_bucket{worker=\"0\",le=\"1\"} 5\n"
                                         "staleness_bucket{worker=\"0\",le=\"2.5\"} 7\n"
                                         "staleness_bucket{worker=\"0\",le=\"+Inf\"} 8\n"
                                         "staleness_sum{worker=\"0\"} 13\n"
                                         "staleness_count{worker=\"0\"} 8\n"));
  EXPECT_TRUE(ParseExposition(text).ok()) << ParseExposition(text).status();
}

TEST(FormatAsText, LeavesOutFamiliesWithoutSamples) {
  MetricPage page;
  page.Gauge("members", "Members by role.");
  EXPECT_EQ(FormatAsText(page), "");
}

}  // namespace
}  // namespace keelson
