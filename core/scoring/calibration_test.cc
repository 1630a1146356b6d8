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

}  // namespace
}  // namespace keelson
