#include "bench/statistics.h"

#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

TEST(SpreadTest, MedianIsTheMiddleOrBetweenTheTwoInTheMiddle) {
  const Spread odd = SpreadOf({3, 1, 10});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 10);
  EXPECT_EQ(SpreadOf({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(SpreadOf({}).median, 0);
}

TEST(LatencyHistogramTest, PercentilesAreWithinTwoPerCent) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Record(i * 1e-6);
  EXPECT_EQ(histogram.count(), 1000);
  EXPECT_NEAR(histogram.PercentileMicroseconds(0.5), 500, 10);
  EXPECT_NEAR(histogram.PercentileMicroseconds(0.99), 990, 20);
  EXPECT_NEAR(histogram.PercentileMicroseconds(1), 1000, 20);
}

TEST(LatencyHistogramTest, EmptyHasNoPercentiles) {
  EXPECT_EQ(LatencyHistogram().PercentileMicroseconds(0.5), 0);
}

TEST(LatencyHistogramTest, AddsUpAndSurvivesItsClasses) {
  LatencyHistogram fast, slow;
  for (int i = 0; i < 3; ++i) fast.Record(10e-6);
  slow.Record(1);
  fast.Add(LatencyHistogram::FromClasses(slow.Classes()));
  EXPECT_EQ(fast.count(), 4);
  EXPECT_NEAR(fast.PercentileMicroseconds(0.75), 10, 0.2);
  EXPECT_NEAR(fast.PercentileMicroseconds(0.76), 1e6, 2e4);
}

TEST(LatencyHistogramTest, NothingIsTooFast) {
  LatencyHistogram histogram;
  histogram.Record(0);
  EXPECT_GT(histogram.PercentileMicroseconds(0.5), 0);
}

}  // namespace
}  // namespace keelson::bench
