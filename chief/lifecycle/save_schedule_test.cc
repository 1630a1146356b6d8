#include "chief/lifecycle/save_schedule.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kStart = absl::Hours(1);
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

absl::Duration At(int64_t seconds) { return kStart + absl::Seconds(seconds); }

SaveSchedule EverySteps(int64_t save_steps) {
  SaveSchedule::Options options;
  options.save_steps = save_steps;
  return SaveSchedule(options, 0, kStart);
}

SaveSchedule EverySeconds(int64_t seconds) {
  SaveSchedule::Options options;
  options.interval = absl::Seconds(seconds);
  return SaveSchedule(options, 0, kStart);
}

TEST(RetryPauseTest, DoublesUpToTheLongest) {
  RetryPause pause(absl::Seconds(1), absl::Seconds(5));
  EXPECT_EQ(pause.Next(), absl::Seconds(1));
  EXPECT_EQ(pause.Next(), absl::Seconds(2));
  EXPECT_EQ(pause.Next(), absl::Seconds(4));
  EXPECT_EQ(pause.Next(), absl::Seconds(5));
  EXPECT_EQ(pause.Next(), absl::Seconds(5));
  pause.Reset();
  EXPECT_EQ(pause.Next(), absl::Seconds(1));
}

TEST(SaveScheduleTest, EverySoManySteps) {
  SaveSchedule schedule = EverySteps(10);
  EXPECT_EQ(schedule.AwaitedStep(kStart), 10);
  EXPECT_FALSE(schedule.Due(9, At(1)));
  EXPECT_TRUE(schedule.Due(10, At(1)));
  schedule.NoteSaved(12, At(1));
  EXPECT_EQ(schedule.AwaitedStep(At(1)), 22);
  EXPECT_FALSE(schedule.Due(21, At(10000)));
}

TEST(SaveScheduleTest, EverySoManySeconds) {
  SaveSchedule schedule = EverySeconds(60);
  EXPECT_EQ(schedule.AwaitedStep(kStart), kNever);
  EXPECT_FALSE(schedule.Due(5, At(59)));
  EXPECT_TRUE(schedule.Due(5, At(60)));
  schedule.NoteSaved(5, At(60));
  EXPECT_FALSE(schedule.Due(6, At(119)));
  EXPECT_TRUE(schedule.Due(6, At(120)));
}

TEST(SaveScheduleTest, AStepIsNotSavedTwice) {
  SaveSchedule schedule = EverySeconds(60);
  schedule.NoteSaved(5, At(60));
  EXPECT_FALSE(schedule.Due(5, At(1000)));
}

TEST(SaveScheduleTest, AFailureIsTriedAgainWithGrowingPauses) {
  SaveSchedule schedule = EverySteps(10);
  schedule.NoteFailed(At(0));
  EXPECT_EQ(schedule.AwaitedStep(At(0)), kNever) << "the steps are there, the time is not";
  EXPECT_FALSE(schedule.Due(11, kStart + absl::Milliseconds(999)));
  EXPECT_TRUE(schedule.Due(11, At(1)));
  schedule.NoteFailed(At(1));
  EXPECT_FALSE(schedule.Due(12, At(2)));
  EXPECT_TRUE(schedule.Due(12, At(3)));
  schedule.NoteSaved(12, At(3));
  EXPECT_TRUE(schedule.Due(22, At(3)));
  schedule.NoteFailed(At(3));
  EXPECT_TRUE(schedule.Due(22, At(4))) << "the pause is short again";
}

}  // namespace
}  // namespace keelson
