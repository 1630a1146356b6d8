#include "core/scoring/direction.h"

#include <cmath>
#include <map>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(DirectionTest, LessIsBetterForTheLossAndErrors) {
  for (const char* name : {"loss", "mean_squared_error", "mean_absolute_error"}) {
    EXPECT_FALSE(HigherIsBetter(name)) << name;
  }
  for (const char* name : {"accuracy", "top_5", "auc", "auc_pr", "precision", "recall"}) {
    EXPECT_TRUE(HigherIsBetter(name)) << name;
  }
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
