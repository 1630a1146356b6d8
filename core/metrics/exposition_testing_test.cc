#include "core/metrics/exposition_testing.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kGauge[] = "# HELP g A gauge.\n# TYPE g gauge\n";
constexpr char kHistogram[] = "# HELP h Sizes.\n# TYPE h histogram\n";

void ExpectRefused(const std::string& text, absl::string_view why) {
  const absl::StatusOr<Exposition> page = ParseExposition(text);
  ASSERT_FALSE(page.ok()) << text;
  EXPECT_THAT(page.status().message(), HasSubstr(std::string(why)));
}

TEST(ParseExposition, ReadsEveryType) {
  const absl::StatusOr<Exposition> page = ParseExposition(absl::StrCat(
      "# HELP c_total Events.\n# TYPE c_total counter\nc_total{a=\"x\"} 3\n", kGauge, "g -1.5e-7\n",
      kHistogram, "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 9\nh_count 3\n"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->types,
              ElementsAre(Pair("c_total", "counter"), Pair("g", "gauge"), Pair("h", "histogram")));
  EXPECT_THAT(page->samples,
              UnorderedElementsAre(Pair("c_total{a=\"x\"}", 3), Pair("g", -1.5e-7),
                                   Pair("h_bucket{le=\"1\"}", 2), Pair("h_bucket{le=\"+Inf\"}", 3),
                                   Pair("h_sum", 9), Pair("h_count", 3)));
}

TEST(ParseExposition, RefusesBadLines) {
  ExpectRefused(absl::StrCat(kGauge, "g 1"), "the last line does not end");
  ExpectRefused(absl::StrCat(kGauge, "g one\n"), "line 3: not a number: one");
  ExpectRefused(absl::StrCat(kGauge, "g 1 \n"), "not a number");
  ExpectRefused(absl::StrCat(kGauge, "\n"), "no value");
  ExpectRefused(absl::StrCat(kGauge, "g-h 1\n"), "bad name: g-h");
  ExpectRefused(absl::StrCat(kGauge, "g{} 1\n", "g 2\n"), "sample twice: g");
  ExpectRefused(absl::StrCat(kGauge, "g{a=\"1\",a=\"2\"} 1\n"), "label twice");
  ExpectRefused(absl::StrCat(kGauge, "g{1=\"2\"} 1\n"), "bad label name");
  ExpectRefused(absl::StrCat(kGauge, "g{a=\"\\x\"} 1\n"), "bad escape");
  ExpectRefused(absl::StrCat(kGauge, "g{a=\"2} 1\n"), "does not end");
}

TEST(ParseExposition, RefusesBadFamilies) {
  ExpectRefused("g 1\n", "no TYPE before: g");
  ExpectRefused("# HELP g G.\ng 1\n", "no TYPE before: g");
  ExpectRefused("# TYPE g gauge\ng 1\n", "TYPE not after its HELP");
  ExpectRefused("# HELP g G.\n# TYPE g summary\n", "unknown type");
  ExpectRefused(kGauge, "no samples: g");
  ExpectRefused(absl::StrCat(kGauge, "g 1\n", kGauge, "g 2\n"), "family twice: g");
  ExpectRefused(absl::StrCat(kGauge, "f 1\n"), "not of the family: f");
  ExpectRefused("# HELP c C.\n# TYPE c counter\nc 1\n", "not called _total");
  ExpectRefused("# HELP c_total C.\n# TYPE c_total counter\nc_total -1\n", "negative counter");
}

TEST(ParseExposition, RefusesBadHistograms) {
  const auto refused = [](absl::string_view samples, absl::string_view why) {
    ExpectRefused(absl::StrCat(kHistogram, samples), why);
  };
  refused("h_bucket{le=\"1\"} 2\nh_sum 1\nh_count 2\n", "no bucket +Inf");
  refused("h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n", "not cumulative");
  refused("h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 2\n", "not ascending");
  refused("h_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 3\n", "not that of the bucket +Inf");
  refused("h_bucket{le=\"+Inf\"} 2\nh_count 2\n", "no _sum");
  refused("h 2\n", "not of the histogram");
}

}  // namespace
}  // namespace keelson
