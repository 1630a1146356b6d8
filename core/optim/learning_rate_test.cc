#include "core/optim/learning_rate.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/optim/optim_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

LearningRateSchedule Schedule(const std::string& text, int64_t max_steps = 0) {
  return LearningRateSchedule::Create(ParseAs<v1::LearningRateConfig>(text), max_steps).value();
}

TEST(LearningRateTest, ConstantIsTheDefault) {
  for (const char* text : {"base: 0.5", "base: 0.5 constant {}"}) {
    const LearningRateSchedule schedule = Schedule(text);
    EXPECT_EQ(schedule.At(0), 0.5f);
    EXPECT_EQ(schedule.At(1'000'000'000'000), 0.5f);
  }
}

TEST(LearningRateTest, WarmupRisesToTheBase) {
  const LearningRateSchedule schedule = Schedule("base: 2 warmup_steps: 4");
  EXPECT_EQ(schedule.At(0), 0.5f);
  EXPECT_EQ(schedule.At(2), 1.5f);
  EXPECT_EQ(schedule.At(3), 2.0f);
  EXPECT_EQ(schedule.At(4), 2.0f);
}

TEST(LearningRateTest, StepChangesAtTheBoundary) {
  const LearningRateSchedule schedule =
      Schedule("base: 1 step { boundaries: [10, 20] factor: 0.5 }");
  EXPECT_EQ(schedule.At(9), 1.0f);
  EXPECT_EQ(schedule.At(10), 0.5f);
  EXPECT_EQ(schedule.At(19), 0.5f);
  EXPECT_EQ(schedule.At(20), 0.25f);
  EXPECT_EQ(schedule.At(1000), 0.25f);
}

TEST(LearningRateTest, ScheduleCountsFromTheEndOfTheWarmup) {
  const LearningRateSchedule schedule =
      Schedule("base: 1 warmup_steps: 5 step { boundaries: 10 factor: 0.5 }");
  EXPECT_EQ(schedule.At(4), 1.0f);
  EXPECT_EQ(schedule.At(14), 1.0f);
  EXPECT_EQ(schedule.At(15), 0.5f);
}

TEST(LearningRateTest, Exponential) {
  const LearningRateSchedule schedule =
      Schedule("base: 0.1 exponential { rate: 0.96 decay_steps: 100 }");
  for (const int64_t t : {0, 1, 99, 100, 101, 5000}) {
    EXPECT_FLOAT_EQ(schedule.At(t), 0.1f * std::pow(double{0.96f}, t / 100.0)) << t;
  }
}

TEST(LearningRateTest, ExponentialStaircase) {
  const LearningRateSchedule schedule =
      Schedule("base: 1 exponential { rate: 0.5 decay_steps: 100 staircase: true }");
  EXPECT_EQ(schedule.At(99), 1.0f);
  EXPECT_EQ(schedule.At(100), 0.5f);
  EXPECT_EQ(schedule.At(199), 0.5f);
  EXPECT_EQ(schedule.At(200), 0.25f);
}

TEST(LearningRateTest, CosineFallsToAlphaAndStays) {
  const LearningRateSchedule schedule = Schedule("base: 2 cosine { decay_steps: 100 alpha: 0.25 }");
  EXPECT_FLOAT_EQ(schedule.At(0), 2);
  EXPECT_FLOAT_EQ(schedule.At(25), 2 * (0.25 + 0.75 * (1 + std::sqrt(0.5)) / 2));
  EXPECT_FLOAT_EQ(schedule.At(50), 2 * 0.625);
  EXPECT_FLOAT_EQ(schedule.At(100), 0.5);
  EXPECT_FLOAT_EQ(schedule.At(101), 0.5);
}

TEST(LearningRateTest, CosineLastsToTheEndOfTraining) {
  const LearningRateSchedule schedule = Schedule("base: 1 warmup_steps: 20 cosine {}", 120);
  EXPECT_EQ(schedule.At(19), 1.0f);
  EXPECT_EQ(schedule.At(20), 1.0f);
  EXPECT_FLOAT_EQ(schedule.At(70), 0.5);
  EXPECT_NEAR(schedule.At(120), 0, 1e-7);
}

TEST(LearningRateTest, ErrorsNameTheField) {
  struct Case {
    const char* config;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"", "learning_rate.base: expected > 0, found 0"},
      {"base: -0.1", "learning_rate.base: expected > 0, found -0.1"},
      {"base: nan", "learning_rate.base: expected > 0, found nan"},
      {"base: inf", "learning_rate.base: expected > 0, found inf"},
      {"base: 1 warmup_steps: -3", "learning_rate.warmup_steps: expected >= 0, found -3"},
      {"base: 1 step { factor: 0.5 }",
       "learning_rate.step.boundaries: expected at least one, found none"},
      {"base: 1 step { boundaries: 0 factor: 0.5 }",
       "learning_rate.step.boundaries[0]: expected > 0, found 0"},
      {"base: 1 step { boundaries: [200, 200] factor: 0.5 }",
       "learning_rate.step.boundaries[1]: expected > 200, found 200"},
      {"base: 1 step { boundaries: 5 }", "learning_rate.step.factor: expected > 0, found 0"},
      {"base: 1 exponential { decay_steps: 5 }",
       "learning_rate.exponential.rate: expected > 0, found 0"},
      {"base: 1 exponential { rate: 0.9 }",
       "learning_rate.exponential.decay_steps: expected > 0, found 0"},
      {"base: 1 cosine { decay_steps: -1 }",
       "learning_rate.cosine.decay_steps: expected >= 0, found -1"},
      {"base: 1 cosine { decay_steps: 10 alpha: 1.5 }",
       "learning_rate.cosine.alpha: expected [0, 1], found 1.5"},
      {"base: 1 cosine {}",
       "learning_rate.cosine.decay_steps: expected > 0 as max_steps is unknown, found 0"},
  };
  for (const Case& c : cases) {
    const auto schedule =
        LearningRateSchedule::Create(ParseAs<v1::LearningRateConfig>(c.config), 0);
    EXPECT_EQ(schedule.status(), absl::InvalidArgumentError(c.error)) << c.config;
  }
}

TEST(LearningRateTest, AJobMayEndWithinItsWarmup) {
  const LearningRateSchedule schedule = Schedule("base: 1 warmup_steps: 100 cosine {}", 50);
  EXPECT_FLOAT_EQ(schedule.At(0), 0.01f);
  EXPECT_FLOAT_EQ(schedule.At(49), 0.5f);
}

}  // namespace
}  // namespace keelson
