#include "core/scoring/calibration.h"

#include <cmath>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(CalibrationTest, ByHand) {
  Calibration calibration;
  calibration.Add(0.05, false);
  calibration.Add(0.82, true);
  calibration.Add(0.86, false);
  calibration.Add(1, true);
  calibration.Add(NAN, true);
  const std::vector<CalibrationBin> bins = calibration.Bins();
  ASSERT_THAT(bins, SizeIs(3));
  EXPECT_DOUBLE_EQ(bins[1].from, 0.8);
  EXPECT_DOUBLE_EQ(bins[1].to, 0.9);
  EXPECT_EQ(bins[1].count, 2);
  EXPECT_DOUBLE_EQ(bins[1].confidence, 0.84);
  EXPECT_DOUBLE_EQ(bins[1].accuracy, 0.5);
  EXPECT_DOUBLE_EQ(bins[2].to, 1);
  EXPECT_DOUBLE_EQ(calibration.Error(), (0.05 + 2 * 0.34 + 0) / 4);
}

TEST(CalibrationTest, Empty) {
  EXPECT_TRUE(std::isnan(Calibration().Error()));
  EXPECT_THAT(Calibration().Bins(), IsEmpty());
}

// Scores of the probabilities k / 20.
ScoreCounts ScoresAt(int k, int64_t positives, int64_t negatives) {
  const double p = k / 20.0;
  return {std::log(p / (1 - p)), positives, negatives};
}

TEST(CalibrationByDecileTest, ByHand) {
  std::vector<ScoreCounts> by_score;
  for (int k = 19; k >= 10; --k) by_score.push_back(ScoresAt(k, 1, 1));  // the upper 20 of 40
  by_score.push_back(ScoresAt(8, 5, 0));
  by_score.push_back(ScoresAt(7, 0, 5));
  by_score.push_back(ScoresAt(1, 3, 7));
  const std::vector<CalibrationBin> parts = CalibrationByDecile(by_score);
  // The lowest ten are of one score, and all in the second part, in which their middle is.
  ASSERT_THAT(parts, SizeIs(8));
  EXPECT_EQ(parts[0].count, 10);
  EXPECT_NEAR(parts[0].from, 0.05, 1e-12);
  EXPECT_NEAR(parts[0].to, 0.05, 1e-12);
  EXPECT_NEAR(parts[0].confidence, 0.05, 1e-12);
  EXPECT_NEAR(parts[0].accuracy, 0.3, 1e-12);
  EXPECT_EQ(parts[1].count, 5);
  EXPECT_NEAR(parts[1].confidence, 0.35, 1e-12);
  EXPECT_EQ(parts[2].count, 5);
  EXPECT_EQ(parts[3].count, 4);
  EXPECT_NEAR(parts[3].from, 0.5, 1e-12);
  EXPECT_NEAR(parts[3].to, 0.55, 1e-12);
  EXPECT_NEAR(parts[3].confidence, 0.525, 1e-12);
  EXPECT_NEAR(parts[3].accuracy, 0.5, 1e-12);
  EXPECT_NEAR(parts[7].to, 0.95, 1e-12);
}

TEST(CalibrationByDecileTest, FewExamplesAndNone) {
  EXPECT_THAT(CalibrationByDecile({}), IsEmpty());
  const std::vector<ScoreCounts> infinite = {{INFINITY, 1, 0}, {-INFINITY, 0, 1}};
  const std::vector<CalibrationBin> parts = CalibrationByDecile(infinite);
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].confidence, 0);
  EXPECT_EQ(parts[0].accuracy, 0);
  EXPECT_EQ(parts[1].confidence, 1);
  EXPECT_EQ(parts[1].accuracy, 1);
}

}  // namespace
}  // namespace keelson
