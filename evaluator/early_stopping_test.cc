#include "evaluator/early_stopping.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

v1::EvaluationConfig::EarlyStopping WithPatience(int64_t patience, const char* metric = "loss") {
  v1::EvaluationConfig::EarlyStopping config;
  config.set_metric(metric);
  config.set_patience(patience);
  return config;
}

// Evaluations of the steps 100, 200, …
std::map<int64_t, EvaluationRecord> Values(const std::vector<double>& values,
                                           const char* metric = "loss") {
  std::map<int64_t, EvaluationRecord> records;
  for (const double value : values) {
    EvaluationRecord record;
    record.step = 100 * (static_cast<int64_t>(records.size()) + 1);
    record.metrics[metric] = value;
    records[record.step] = record;
  }
  return records;
}

TEST(EarlyStoppingTest, GoesOnWhileTheMetricGetsBetter) {
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(1), {}, kNoEnd).has_value());
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(1), Values({3, 2, 1}), kNoEnd).has_value());
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(2), Values({3, 4, 2, 2, 1}), kNoEnd).has_value());
}

TEST(EarlyStoppingTest, EndsAfterSoManyInVain) {
  const auto stop = JudgeEarlyStopping(WithPatience(2), Values({3, 1, 2, 1, 0.5}), kNoEnd);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->step, 400);
  EXPECT_EQ(stop->best_step, 200);
  EXPECT_EQ(stop->best_value, 1);
  EXPECT_EQ(stop->reason,
            "early stopping: loss has not become better than 1 (step 200) in 2 evaluations");
}

TEST(EarlyStoppingTest, MoreIsBetterForAScore) {
  const auto config = WithPatience(2, "accuracy");
  EXPECT_FALSE(
      JudgeEarlyStopping(config, Values({0.1, 0.2, 0.3, 0.4}, "accuracy"), kNoEnd).has_value());
  const auto stop = JudgeEarlyStopping(config, Values({0.4, 0.3, 0.2}, "accuracy"), kNoEnd);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->best_step, 100);
}

TEST(EarlyStoppingTest, CalibrationGetsBetterTowardsOne) {
  auto config = WithPatience(2, "calibration");
  EXPECT_FALSE(
      JudgeEarlyStopping(config, Values({0.5, 1.25, 0.9, 1}, "calibration"), kNoEnd).has_value());
  config.set_min_delta(0.1);
  const auto stop = JudgeEarlyStopping(config, Values({0.5, 0.8, 1.15, 0.95}, "calibration"), 400);
  EXPECT_FALSE(stop.has_value());
  EXPECT_EQ(
      JudgeEarlyStopping(config, Values({0.5, 0.8, 1.15, 1.3}, "calibration"), kNoEnd)->best_step,
      200);
}

TEST(EarlyStoppingTest, ALittleBetterIsNotBetter) {
  auto config = WithPatience(3);
  config.set_min_delta(0.5);
  const auto values = Values({3, 2.75, 2.5, 2.25, 2});
  // The third is better by exactly the delta, the fourth by more.
  EXPECT_FALSE(JudgeEarlyStopping(config, values, kNoEnd).has_value());
  config.set_patience(2);
  EXPECT_EQ(JudgeEarlyStopping(config, values, kNoEnd)->step, 300);
}

TEST(EarlyStoppingTest, NotBeforeTheFirstSteps) {
  auto config = WithPatience(1);
  config.set_min_steps(350);
  EXPECT_FALSE(JudgeEarlyStopping(config, Values({1, 2, 3}), kNoEnd).has_value());
  EXPECT_EQ(JudgeEarlyStopping(config, Values({1, 2, 3, 4}), kNoEnd)->step, 400);
  EXPECT_FALSE(JudgeEarlyStopping(config, Values({1, 2, 3, 0.5}), kNoEnd).has_value());
}

TEST(EarlyStoppingTest, WhatIsNoNumberIsInVain) {
  const auto stop = JudgeEarlyStopping(WithPatience(2), Values({1, NAN, NAN}), kNoEnd);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->best_step, 100);
  const auto never = JudgeEarlyStopping(WithPatience(2), Values({NAN, NAN}), kNoEnd);
  ASSERT_TRUE(never.has_value());
  EXPECT_FALSE(never->best_step.has_value());
  EXPECT_EQ(never->reason,
            "early stopping: loss has not become better than any number in 2 evaluations");
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(2), Values({NAN, 5, NAN}), kNoEnd).has_value());
}

TEST(EarlyStoppingTest, AnEvaluationWithoutTheMetricDoesNotCount) {
  auto records = Values({1, 2, 3});
  records[200].metrics = {{"accuracy", 0.5}};
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(2), records, kNoEnd).has_value());
}

TEST(EarlyStoppingTest, LooksNoFurtherThanTheEnd) {
  const auto records = Values({1, 2, 3});
  EXPECT_FALSE(JudgeEarlyStopping(WithPatience(2), records, 300).has_value());
  EXPECT_TRUE(JudgeEarlyStopping(WithPatience(2), records, 301).has_value());
}

}  // namespace
}  // namespace keelson
