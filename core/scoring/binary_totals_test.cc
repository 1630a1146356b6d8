#include "core/scoring/binary_totals.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

BinaryTotals TotalsOf(const std::vector<std::pair<float, bool>>& examples) {
  BinaryTotals totals;
  for (const auto& [score, positive] : examples) totals.Add(score, positive);
  return totals;
}

// Probabilities 0.75, 0.25, 0.25, 0.25, of which one comes true.
TEST(BinaryTotalsTest, ByHand) {
  const float s = std::log(3.0f);
  const BinaryTotals totals = TotalsOf({{s, true}, {-s, false}, {-s, false}, {-s, false}});
  EXPECT_NEAR(totals.CalibrationRatio(), 1.5, 1e-7);
  const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  EXPECT_NEAR(totals.NormalizedEntropy(), -std::log(0.75) / entropy, 1e-7);
}

TEST(BinaryTotalsTest, SumsOfTwoAreThoseOfAllTheirExamples) {
  const float s = std::log(3.0f);
  BinaryTotals some = TotalsOf({{s, true}, {-s, false}});
  some.Add(TotalsOf({{-s, false}, {-s, false}}));
  EXPECT_EQ(some.examples(), 4);
  EXPECT_DOUBLE_EQ(some.PositiveShare(), 0.25);
  EXPECT_NEAR(some.MeanProbability(), 0.375, 1e-7);
  EXPECT_NEAR(some.CrossEntropy(), -std::log(0.75), 1e-7);
  EXPECT_TRUE(std::isnan(BinaryTotals().PositiveShare()));
}

TEST(BinaryTotalsTest, TheShareOfEveryoneScoresOne) {
  const float s = std::log(3.0f);
  const BinaryTotals totals = TotalsOf({{-s, true}, {-s, false}, {-s, false}, {-s, false}});
  EXPECT_NEAR(totals.NormalizedEntropy(), 1, 1e-7);
  EXPECT_NEAR(totals.CalibrationRatio(), 1, 1e-7);
}

TEST(BinaryTotalsTest, LargeScoresDoNotOverflow) {
  const BinaryTotals right = TotalsOf({{1000, true}, {-1000, false}});
  EXPECT_DOUBLE_EQ(right.NormalizedEntropy(), 0);
  EXPECT_DOUBLE_EQ(right.CalibrationRatio(), 1);
  const BinaryTotals wrong = TotalsOf({{-1000, true}, {1000, false}});
  EXPECT_DOUBLE_EQ(wrong.NormalizedEntropy(), 1000 / std::log(2.0));
}

// Floats would stop counting after 2^24 of them.
TEST(BinaryTotalsTest, ManyExamplesAddUp) {
  constexpr int64_t kExamples = (int64_t{1} << 24) + (int64_t{1} << 22);
  BinaryTotals totals;
  for (int64_t i = 0; i < kExamples; ++i) totals.Add(0, i % 2 == 0);
  EXPECT_DOUBLE_EQ(totals.CalibrationRatio(), 1);
  EXPECT_NEAR(totals.NormalizedEntropy(), 1, 1e-9);
}

TEST(BinaryTotalsTest, WithoutBothLabelsThereIsNoEntropy) {
  EXPECT_TRUE(std::isnan(BinaryTotals().NormalizedEntropy()));
  EXPECT_TRUE(std::isnan(BinaryTotals().CalibrationRatio()));
  EXPECT_TRUE(std::isnan(TotalsOf({{1, false}}).NormalizedEntropy()));
  EXPECT_TRUE(std::isnan(TotalsOf({{1, false}}).CalibrationRatio()));
  EXPECT_TRUE(std::isnan(TotalsOf({{1, true}}).NormalizedEntropy()));
  EXPECT_NEAR(TotalsOf({{0, true}}).CalibrationRatio(), 0.5, 1e-12);
}

TEST(BinaryTotalsTest, AScoreThatIsNoNumberLeavesNone) {
  const BinaryTotals totals = TotalsOf({{NAN, true}, {0, false}});
  EXPECT_TRUE(std::isnan(totals.NormalizedEntropy()));
  EXPECT_TRUE(std::isnan(totals.CalibrationRatio()));
}

}  // namespace
}  // namespace keelson
