#include "bench/data/sample_lines.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

void ExpectLines(const std::string& lines, double least, double most) {
  EXPECT_GE(lines.size(), 1'000'000u);
  const auto count = static_cast<double>(std::count(lines.begin(), lines.end(), '\n'));
  EXPECT_EQ(lines.back(), '\n');
  EXPECT_GE(static_cast<double>(lines.size()) / count, least);
  EXPECT_LE(static_cast<double>(lines.size()) / count, most);
}

TEST(SampleLinesTest, LinesAreAsLongAsThoseOfTheDataSets) {
  ExpectLines(LinesLikeA9a(1'000'000), 70, 80);
  ExpectLines(LinesLikeRcv1(1'000'000), 900, 1200);
  ExpectLines(LinesLikeCriteo(1'000'000), 220, 250);
}

}  // namespace
}  // namespace keelson::bench
