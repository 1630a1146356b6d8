#include "core/scoring/curve.h"

#include <cmath>
#include <cstdint>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ThinCurveTest, KeepsWhatBends) {
  const std::vector<CurvePoint> points = {{0, 0}, {0, 0.5}, {0, 1}, {0.5, 1}, {0.75, 1}, {1, 1}};
  const std::vector<CurvePoint> thinned = ThinCurve(points, 200);
  ASSERT_EQ(thinned.size(), 3u);
  EXPECT_EQ(thinned[1].x, 0);
  EXPECT_EQ(thinned[1].y, 1);
}

TEST(ThinCurveTest, ShortCurvesStay) {
  EXPECT_TRUE(ThinCurve({}, 2).empty());
  EXPECT_EQ(ThinCurve(std::vector<CurvePoint>{{0, 0}}, 2).size(), 1u);
  EXPECT_EQ(ThinCurve(std::vector<CurvePoint>{{0, 0}, {1, 1}}, 2).size(), 2u);
  EXPECT_EQ(ThinCurve(std::vector<CurvePoint>{{0, 0}, {0, 1}, {1, 1}}, 2).size(), 2u);
}

TEST(ThinCurveTest, KeepsTheArea) {
  std::vector<std::vector<CurvePoint>> curves;
  for (const int steps : {150, 250, 5000}) {
    std::vector<CurvePoint> stairs;
    std::vector<CurvePoint> random_walk;
    std::vector<CurvePoint> bend;
    std::vector<CurvePoint> wave;
    double up = 0;
    for (int i = 0; i <= steps; ++i) {
      const double x = static_cast<double>(i) / steps;
      stairs.push_back({x, x});
      stairs.push_back({x, static_cast<double>(i + 1) / steps});
      up += UniformFloat(Philox(11, 3, static_cast<uint64_t>(i))[0]) < 0.5f ? 1 : 0;
      random_walk.push_back({x, up / steps});
      bend.push_back({x, std::pow(x, 0.02)});
      wave.push_back({x, 0.5 + 0.5 * std::cos(9 * x)});
    }
    curves.insert(curves.end(), {stairs, random_walk, bend, wave});
  }
  for (const std::vector<CurvePoint>& curve : curves) {
    const std::vector<CurvePoint> thinned = ThinCurve(curve, 200);
    EXPECT_LE(thinned.size(), 200u);
    EXPECT_NEAR(AreaUnder(thinned), AreaUnder(curve), 1e-3) << curve.size();
    for (size_t i = 1; i < thinned.size(); ++i) EXPECT_GE(thinned[i].x, thinned[i - 1].x);
  }
}

}  // namespace
}  // namespace keelson
