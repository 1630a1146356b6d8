#include "core/summary/metrics_line.h"

#include <limits>
#include <regex>
#include <vector>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const absl::Time kTime = absl::FromUnixMillis(1'795'205'703'120);

using Metrics = std::vector<std::pair<std::string, std::string>>;

// What Katib's collector reads from a line.
Metrics Collect(const std::string& line) {
  static const char kPattern[] = R"(([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?))";
  const std::regex pattern(kPattern);
  Metrics metrics;
  for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
    metrics.emplace_back((*it)[1], (*it)[2]);
  }
  return metrics;
}

TEST(MetricsLineTest, IsKatibsLine) {
  EXPECT_EQ(FormatMetricsLine(kTime, {{"step", 1200}, {"loss", 0.4312}}),
            "2026-11-20T20:15:03.120Z step=1200 loss=0.4312");
}

TEST(MetricsLineTest, KatibReadsEveryValueWhole) {
  const std::string line = FormatMetricsLine(
      kTime, {{"step", 123456789}, {"loss", 1.25e-9}, {"rate", 1e30}, {"gain", -0.5}, {"zero", 0}});
  EXPECT_THAT(Collect(line),
              ElementsAre(Pair("step", "123456789"), Pair("loss", "1.25e-09"),
                          Pair("rate", "1e+30"), Pair("gain", "-0.5"), Pair("zero", "0")));
}

TEST(MetricsLineTest, LeavesOutWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string line =
      FormatMetricsLine(kTime, {{"a", std::numeric_limits<double>::quiet_NaN()},
                                {"b", 1},
                                {"c", infinity},
                                {"d", -infinity}});
  EXPECT_EQ(line, "2026-11-20T20:15:03.120Z b=1");
}

TEST(MetricsLineTest, NamesAreKatibs) {
  const std::string line = FormatMetricsLine(kTime, {{"eval/top.5", 1}, {"a-b|c_d", 2}});
  EXPECT_THAT(Collect(line), ElementsAre(Pair("eval_top_5", "1"), Pair("a-b|c_d", "2")));
}

TEST(MetricsLineTest, NothingButTheTime) {
  EXPECT_EQ(FormatMetricsLine(kTime, {}), "2026-11-20T20:15:03.120Z");
}

}  // namespace
}  // namespace keelson
