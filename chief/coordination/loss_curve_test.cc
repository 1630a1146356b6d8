#include "chief/coordination/loss_curve.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(LossCurveTest, APointNeedsEveryStepOfItsInterval) {
  LossCurve curve(0, 4);
  for (const int64_t step : {0, 3, 1}) curve.Add(step, static_cast<double>(step));
  EXPECT_FALSE(curve.TakeComplete().has_value());
  curve.Add(2, 2);
  const auto point = curve.TakeComplete();
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->step, 4);
  EXPECT_EQ(point->loss, 1.5);
  EXPECT_FALSE(curve.TakeComplete().has_value());
}

TEST(LossCurveTest, LaterStepsWaitForTheirInterval) {
  LossCurve curve(0, 2);
  for (const int64_t step : {2, 3, 4, 0}) curve.Add(step, static_cast<double>(step));
  EXPECT_FALSE(curve.TakeComplete().has_value());
  curve.Add(1, 1);
  EXPECT_EQ(curve.TakeComplete()->step, 2);
  EXPECT_EQ(curve.TakeComplete()->loss, 2.5);
  EXPECT_FALSE(curve.TakeComplete().has_value());
}

TEST(LossCurveTest, AStepCountsOnce) {
  LossCurve curve(0, 2);
  curve.Add(0, 1);
  curve.Add(0, 100);
  curve.Add(1, 3);
  EXPECT_EQ(curve.TakeComplete()->loss, 2.0);
  curve.Add(1, 100);
  EXPECT_FALSE(curve.TakeRest().has_value());
}

TEST(LossCurveTest, AContinuedJobBeginsWithinAnInterval) {
  LossCurve curve(7, 5);
  for (const int64_t step : {7, 8, 9}) curve.Add(step, 1);
  EXPECT_EQ(curve.TakeComplete()->step, 10);
}

TEST(LossCurveTest, StepsOfAPredecessorAreNotWaitedFor) {
  LossCurve curve(2, 5);
  for (const int64_t step : {4, 13, 14}) curve.Add(step, static_cast<double>(step));
  EXPECT_FALSE(curve.TakeComplete(4).has_value());
  const auto point = curve.TakeComplete(15);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->step, 5);
  EXPECT_EQ(point->loss, 4);
  // Nothing is known of steps 5 to 9.
  const auto next = curve.TakeComplete(15);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->step, 15);
  EXPECT_EQ(next->loss, 13.5);
  EXPECT_FALSE(curve.TakeComplete(15).has_value());
}

TEST(LossCurveTest, TheRestIsWhatTheEndLeaves) {
  LossCurve curve(0, 10);
  EXPECT_FALSE(curve.TakeRest().has_value());
  curve.Add(0, 1);
  curve.Add(1, 2);
  const auto rest = curve.TakeRest();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->step, 2);
  EXPECT_EQ(rest->loss, 1.5);
}

TEST(LossCurveTest, AStepThatIsMissingForLongDoesNotFillTheMemory) {
  constexpr int64_t kInterval = 1000;
  constexpr auto kKept = static_cast<int64_t>(LossCurve::kMaxKept);
  LossCurve curve(0, kInterval);
  for (int64_t step = 1; step <= kKept + 10 * kInterval; ++step) curve.Add(step, 2);
  EXPECT_EQ(curve.TakeComplete(), std::nullopt);
  curve.Add(0, 2);
  int64_t points = 0;
  while (curve.TakeComplete(kKept + 10 * kInterval)) ++points;
  EXPECT_EQ(points, kKept / kInterval + 1) << "what was left out has none";
}

}  // namespace
}  // namespace keelson
