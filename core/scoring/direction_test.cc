#include "core/scoring/direction.h"

#include <cmath>
#include <map>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(DirectionTest, LessIsBetterForTheLossAndErrors) {
  for (const char* name :
       {"loss", "loss/click", "mean_squared_error", "mean_absolute_error", "normalized_entropy"}) {
    EXPECT_EQ(DirectionOf(name), Direction::kLess) << name;
    EXPECT_TRUE(IsBetter(name, 0.25, 0.5));
    EXPECT_EQ(Gain(name, 0.25, 0.5), 0.25);
  }
  for (const char* name :
       {"accuracy", "top_5", "auc", "auc_pr", "precision", "recall", "group_auc/calibration",
        "group_auc_mean/user", "recall@10", "hit_rate@10", "ndcg@10"}) {
    EXPECT_EQ(DirectionOf(name), Direction::kMore) << name;
    EXPECT_TRUE(IsBetter(name, 0.5, 0.25));
    EXPECT_EQ(Gain(name, 0.25, 0.5), -0.25);
  }
}

TEST(DirectionTest, CalibrationIsBestAtOne) {
  EXPECT_EQ(DirectionOf("calibration"), Direction::kToOne);
  EXPECT_TRUE(IsBetter("calibration", 0.75, 1.5));
  EXPECT_TRUE(IsBetter("calibration", 1.25, 0.5));
  EXPECT_FALSE(IsBetter("calibration", 0.75, 1.25)) << "they are as far from 1";
  EXPECT_FALSE(IsBetter("calibration", 1.25, 0.75));
  EXPECT_EQ(Gain("calibration", 1, 1.5), 0.5);
}

std::optional<BestValue> BestOfValues(absl::string_view metric,
                                      const std::map<int64_t, double>& values) {
  std::optional<BestValue> best;
  for (const auto& [step, value] : values) TakeIfBest(metric, step, value, &best);
  return best;
}

TEST(BestValueTest, IsTheFirstOfTheBest) {
  const std::map<int64_t, double> values = {{1, 0.5}, {2, 0.9}, {3, 0.9}, {4, 0.5}};
  EXPECT_EQ(BestOfValues("accuracy", values)->step, 2);
  EXPECT_EQ(BestOfValues("accuracy", values)->value, 0.9);
  EXPECT_EQ(BestOfValues("loss", values)->step, 1);
  EXPECT_EQ(BestOfValues("calibration", {{1, 0.5}, {2, 1.25}, {3, 0.75}})->step, 2);
}

TEST(BestValueTest, IsFinite) {
  EXPECT_EQ(BestOfValues("accuracy", {{1, NAN}, {2, INFINITY}, {3, -INFINITY}}), std::nullopt);
  for (const char* metric : {"accuracy", "loss"}) {
    EXPECT_EQ(BestOfValues(metric, {{1, INFINITY}, {2, -INFINITY}, {3, 1}, {4, NAN}})->step, 3);
    for (const float value : {NAN, INFINITY, -INFINITY}) {
      EXPECT_TRUE(IsBetter(metric, 1, value)) << metric << " " << value;
      EXPECT_FALSE(IsBetter(metric, value, 1)) << metric << " " << value;
      EXPECT_FALSE(IsBetter(metric, value, INFINITY)) << metric << " " << value;
    }
  }
}

}  // namespace
}  // namespace keelson
