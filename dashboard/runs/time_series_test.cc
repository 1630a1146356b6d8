#include "dashboard/runs/time_series.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<int64_t> Steps(const TimeSeries& series, const std::vector<uint32_t>& positions) {
  std::vector<int64_t> steps;
  for (const uint32_t position : positions) steps.push_back(series.at(position).step);
  return steps;
}

std::vector<int64_t> Select(const TimeSeries& series, CurveAxis axis, const CurveRange& range,
                            size_t max_points, size_t expected_total) {
  size_t total = 0;
  const std::vector<uint32_t> positions = series.Select(axis, range, max_points, &total);
  EXPECT_EQ(total, expected_total);
  return Steps(series, positions);
}

std::vector<int64_t> All(const TimeSeries& series) {
  return Select(series, CurveAxis::kStep, {}, series.size(), series.size());
}

TEST(TimeSeriesTest, IsOrderedByStepWhateverTheOrderOfTheFiles) {
  TimeSeries series;
  series.Add({30, 3, 0});
  series.Add({10, 1, 0});
  EXPECT_EQ(series.size(), 0u);
  series.Commit(1);
  series.Add({20, 2, 0});
  series.Add({5, 0.5, 0});
  series.Commit(2);
  EXPECT_THAT(All(series), ElementsAre(5, 10, 20, 30));
}

TEST(TimeSeriesTest, OfAStepTheNewestPointCounts) {
  TimeSeries series;
  series.Add({1, 10, 0.1});
  series.Add({1, 12, 0.2});
  series.Add({1, 11, 0.3});
  series.Add({2, 12, 0.4});
  series.Commit(1);
  EXPECT_EQ(series.at(0).value, 0.2);
  // A process that was restored from a snapshot repeats a step; a file that is found late does not
  // count.
  series.Add({1, 20, 0.5});
  series.Add({2, 5, 0.6});
  series.Commit(2);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series.at(0).value, 0.5);
  EXPECT_EQ(series.at(1).value, 0.4);
  // The later of two points with the same time counts.
  series.Add({2, 12, 0.7});
  series.Commit(3);
  EXPECT_EQ(series.at(1).value, 0.7);
}

TEST(TimeSeriesTest, TellsFromWhichStepItChanged) {
  TimeSeries series;
  EXPECT_EQ(series.revision(), 0u);
  series.Add({10, 1, 0});
  series.Commit(1);
  series.Add({20, 2, 0});
  series.Commit(2);
  series.Add({15, 3, 0});
  series.Commit(3);
  series.Commit(4);
  EXPECT_EQ(series.revision(), 3u);
  EXPECT_EQ(series.ChangedFrom(0), 10);
  EXPECT_EQ(series.ChangedFrom(1), 15);
  EXPECT_EQ(series.ChangedFrom(3), std::numeric_limits<int64_t>::max());
  for (int i = 0; i < 100; ++i) {
    series.Add({100 + i, 4.0 + i, 0});
    series.Commit(static_cast<uint64_t>(5 + i));
  }
  // For an old revision it may return too much, never too little.
  EXPECT_LE(series.ChangedFrom(1), 15);
  EXPECT_EQ(series.ChangedFrom(103), 199);
}

TEST(TimeSeriesTest, ATimeThatIsNoneIsNotTaken) {
  TimeSeries series;
  for (const double time : {kNan, HUGE_VAL, -HUGE_VAL, 1e300}) series.Add({1, time, 0});
  series.Commit(1);
  EXPECT_EQ(series.size(), 0u);
}

TEST(TimeSeriesTest, RangesHaveBothEnds) {
  TimeSeries series;
  for (int64_t step = 0; step < 10; ++step)
    series.Add({step, 100.0 + static_cast<double>(step), 0});
  series.Commit(1);
  EXPECT_THAT(Select(series, CurveAxis::kStep, {3, 5}, 100, 3), ElementsAre(3, 4, 5));
  EXPECT_THAT(Select(series, CurveAxis::kStep, {2.5, 3.5}, 100, 1), ElementsAre(3));
  EXPECT_THAT(Select(series, CurveAxis::kStep, {8, {}}, 100, 2), ElementsAre(8, 9));
  EXPECT_THAT(Select(series, CurveAxis::kTime, {{}, 101}, 100, 2), ElementsAre(0, 1));
  EXPECT_THAT(Select(series, CurveAxis::kStep, {5, 3}, 100, 0), IsEmpty());
  EXPECT_THAT(Select(series, CurveAxis::kStep, {1e300, {}}, 100, 0), IsEmpty());
}

TEST(TimeSeriesTest, AlongTimeARestartedProcessComesAfterItsPredecessor) {
  TimeSeries series;
  series.Add({1, 1, 0});
  series.Add({2, 2, 0});
  series.Add({4, 4, 0});
  series.Commit(1);
  series.Add({2, 7, 0});
  series.Commit(2);
  series.Add({5, 8, 0});
  series.Commit(3);
  series.Add({6, 3, 0});
  series.Commit(4);
  EXPECT_THAT(Select(series, CurveAxis::kTime, {}, 100, 5), ElementsAre(1, 6, 4, 2, 5));
  EXPECT_THAT(Select(series, CurveAxis::kTime, {3.5, 7.5}, 100, 2), ElementsAre(4, 2));
  EXPECT_THAT(Select(series, CurveAxis::kStep, {}, 100, 5), ElementsAre(1, 2, 4, 5, 6));
}

TEST(TimeSeriesTest, ThinnedCurvesKeepTheirExtremesAndEnds) {
  TimeSeries series;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0, 1);
  constexpr int64_t kPoints = 100'000;
  for (int64_t step = 0; step < kPoints; ++step) {
    double value = noise(random);
    if (step == 12'345) value = 50;
    if (step == 54'321) value = -50;
    series.Add({step, static_cast<double>(step), value});
  }
  series.Commit(1);
  for (const CurveAxis axis : {CurveAxis::kStep, CurveAxis::kTime}) {
    const std::vector<int64_t> steps = Select(series, axis, {}, 1000, kPoints);
    EXPECT_LE(steps.size(), 1000u);
    EXPECT_GT(steps.size(), 900u);
    EXPECT_EQ(steps.front(), 0);
    EXPECT_EQ(steps.back(), kPoints - 1);
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
    EXPECT_THAT(steps, testing::IsSupersetOf({12'345, 54'321}));
  }
}

TEST(TimeSeriesTest, EveryPartKeepsItsFirstLowestHighestAndLast) {
  TimeSeries series;
  // Two parts of 10 points: first 5, lowest 1 at step 3, highest 9 at step 6, last 5.
  for (int64_t step = 0; step < 20; ++step) {
    const int64_t place = step % 10;
    series.Add({step, static_cast<double>(step), place == 3 ? 1.0 : place == 6 ? 9.0 : 5.0});
  }
  series.Commit(1);
  EXPECT_THAT(Select(series, CurveAxis::kStep, {}, 8, 20), ElementsAre(0, 3, 6, 9, 10, 13, 16, 19));
  EXPECT_THAT(Select(series, CurveAxis::kStep, {0, 9}, 4, 10), ElementsAre(0, 3, 6, 9));
}

TEST(TimeSeriesTest, ThinningShowsWhatIsNotFinite) {
  TimeSeries series;
  for (int64_t step = 0; step < 1000; ++step) {
    series.Add({step, static_cast<double>(step), step == 500 ? kNan : 1.0});
  }
  series.Commit(1);
  EXPECT_THAT(Select(series, CurveAxis::kStep, {}, 16, 1000), testing::Contains(500));
  TimeSeries nothing_else;
  for (int64_t step = 0; step < 100; ++step) nothing_else.Add({step, 1.0, kNan});
  nothing_else.Commit(1);
  EXPECT_THAT(Select(nothing_else, CurveAxis::kStep, {}, 4, 100), ElementsAre(0, 99));
}

TEST(TimeSeriesTest, AVeryLongCurveIsThinnedAndKeepsItsExtremes) {
  TimeSeries series;
  const auto points = static_cast<int64_t>(TimeSeries::kMaxPoints) + 1;
  for (int64_t step = 0; step < points; ++step) {
    series.Add(
        {step, static_cast<double>(step), step == 777 ? -1.0 : static_cast<double>(step % 7)});
  }
  series.Commit(1);
  EXPECT_LE(series.size(), TimeSeries::kMaxPoints / 2);
  EXPECT_GT(series.size(), TimeSeries::kMaxPoints / 4);
  EXPECT_EQ(series.at(0).step, 0);
  EXPECT_EQ(series.at(series.size() - 1).step, points - 1);
  const std::vector<int64_t> steps = All(series);
  EXPECT_TRUE(std::binary_search(steps.begin(), steps.end(), 777));
}

}  // namespace
}  // namespace keelson
