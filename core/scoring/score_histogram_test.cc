#include "core/scoring/score_histogram.h"

#include <cmath>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::vector<ScoreBin> HistogramOf(const std::vector<ScoreCounts>& by_score) {
  return ScoreHistogram(by_score);
}

TEST(ScoreHistogramTest, ByHand) {
  const std::vector<ScoreBin> bins =
      HistogramOf({{7, 5, 1}, {6.95, 1, 0}, {-0.5, 0, 2}, {-3, 1, 4}});
  ASSERT_THAT(bins, SizeIs(kScoreBins));
  EXPECT_DOUBLE_EQ(bins[0].from, -3);
  EXPECT_DOUBLE_EQ(bins[0].to, -2.75);
  EXPECT_EQ(bins[0].positives, 1);
  EXPECT_EQ(bins[0].negatives, 4);
  EXPECT_EQ(bins[10].negatives, 2);
  EXPECT_DOUBLE_EQ(bins[39].to, 7);
  EXPECT_EQ(bins[39].positives, 6) << "the highest score belongs to the last bin";
  EXPECT_EQ(bins[39].negatives, 1);
  int64_t all = 0;
  for (const ScoreBin& bin : bins) all += bin.negatives + bin.positives;
  EXPECT_EQ(all, 14);
}

TEST(ScoreHistogramTest, AFewExtremesAreInTheOuterBins) {
  const std::vector<ScoreBin> bins =
      HistogramOf({{INFINITY, 1, 0}, {1000, 1, 0}, {1, 500, 500}, {-1, 500, 500}, {-5000, 0, 2}});
  ASSERT_THAT(bins, SizeIs(kScoreBins));
  EXPECT_DOUBLE_EQ(bins.front().from, -1);
  EXPECT_DOUBLE_EQ(bins.back().to, 1);
  EXPECT_EQ(bins.front().negatives, 502);
  EXPECT_EQ(bins.back().positives, 502);
}

TEST(ScoreHistogramTest, OneScoreIsOneBin) {
  const std::vector<ScoreBin> bins = HistogramOf({{2, 3, 4}});
  ASSERT_THAT(bins, SizeIs(1));
  EXPECT_EQ(bins[0].from, 2);
  EXPECT_EQ(bins[0].to, 2);
  EXPECT_EQ(bins[0].positives, 3);
}

TEST(ScoreHistogramTest, WithoutFiniteScoresThereIsNone) {
  EXPECT_THAT(HistogramOf({}), IsEmpty());
  EXPECT_THAT(HistogramOf({{INFINITY, 1, 1}, {-INFINITY, 1, 1}}), IsEmpty());
}

}  // namespace
}  // namespace keelson
