#include "evaluator/schedule.h"

#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

class ScheduleTest : public testing::Test {
 protected:
  EvaluationSchedule Make(int64_t start_delay, int64_t throttle) {
    v1::EvaluationConfig config;
    config.set_start_delay_seconds(start_delay);
    config.set_throttle_seconds(throttle);
    return EvaluationSchedule(config, &clock_);
  }
  // Candidates of untaken snapshots.
  static std::vector<Candidate> Fresh(const std::vector<int64_t>& steps) {
    std::vector<Candidate> candidates;
    for (const int64_t step : steps) candidates.push_back({step, false});
    return candidates;
  }

  ManualClock clock_;
};

TEST_F(ScheduleTest, TakesEverySnapshotInOrder) {
  EvaluationSchedule schedule = Make(0, 0);
  EXPECT_EQ(schedule.Next({}, std::nullopt), std::nullopt);
  EXPECT_EQ(schedule.Next(Fresh({100, 200}), std::nullopt), 100);
  schedule.Begun(clock_.Now());
  EXPECT_EQ(schedule.Next({{{100, true}, {200, false}}}, std::nullopt), 200);
  EXPECT_EQ(schedule.Next({{{100, true}, {200, true}}}, std::nullopt), std::nullopt);
  EXPECT_EQ(schedule.Next({{{100, false}, {200, true}}}, std::nullopt), 100);
}

TEST_F(ScheduleTest, TheFinalSnapshotComesAfterThoseBeforeIt) {
  EvaluationSchedule schedule = Make(0, 0);
  EXPECT_EQ(schedule.Next(Fresh({100, 200}), 200), 100);
}

TEST_F(ScheduleTest, WaitsForTheStartDelayThenTakesTheNewest) {
  EvaluationSchedule schedule = Make(60, 0);
  EXPECT_EQ(schedule.Next(Fresh({100}), std::nullopt), std::nullopt);
  EXPECT_EQ(schedule.Next(Fresh({100, 200}), std::nullopt), std::nullopt);
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(schedule.Next(Fresh({100, 200, 300}), std::nullopt), std::nullopt);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(schedule.Next(Fresh({100, 200, 300}), std::nullopt), 300);
  // From now on every snapshot counts; those before are passed over for good.
  EXPECT_EQ(schedule.Next({{{100, false}, {200, false}, {300, true}}}, std::nullopt), std::nullopt);
  EXPECT_EQ(schedule.Next(Fresh({100, 400, 500}), std::nullopt), 400);
}

TEST_F(ScheduleTest, AThrottledScheduleKeepsItsDistance) {
  EvaluationSchedule schedule = Make(0, 600);
  EXPECT_EQ(schedule.Next(Fresh({100, 200}), std::nullopt), 200);
  schedule.Begun(clock_.Now());
  clock_.Advance(absl::Seconds(599));
  const std::vector<Candidate> later = {{200, true}, {300, false}, {400, false}};
  EXPECT_EQ(schedule.Next(later, std::nullopt), std::nullopt);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(schedule.Next(later, std::nullopt), 400);
  schedule.Begun(clock_.Now());
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(schedule.Next({{{200, true}, {300, false}, {400, true}}}, std::nullopt), std::nullopt);
}

TEST_F(ScheduleTest, TheFinalSnapshotWaitsForNothing) {
  EvaluationSchedule schedule = Make(3600, 600);
  schedule.Begun(clock_.Now());
  EXPECT_EQ(schedule.Next(Fresh({100, 200}), 300), std::nullopt) << "it is not there yet";
  EXPECT_EQ(schedule.Next(Fresh({100, 200, 300}), 300), 300);
  EXPECT_EQ(schedule.Next({{{100, false}, {300, true}}}, 300), std::nullopt);
}

TEST_F(ScheduleTest, CountsWhatOthersAndEarlierLivesHaveBegun) {
  EvaluationSchedule schedule = Make(0, 600);
  schedule.Begun(clock_.Now() - absl::Seconds(500));
  schedule.Begun(clock_.Now() - absl::Seconds(900));
  EXPECT_EQ(schedule.Next(Fresh({100}), std::nullopt), std::nullopt);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(schedule.Next(Fresh({100}), std::nullopt), 100);
}

TEST_F(ScheduleTest, ABeginningInTheFutureCountsAsNow) {
  EvaluationSchedule schedule = Make(0, 600);
  schedule.Begun(clock_.Now() + absl::Hours(24));
  clock_.Advance(absl::Seconds(600));
  EXPECT_EQ(schedule.Next(Fresh({100}), std::nullopt), 100);
}

}  // namespace
}  // namespace keelson
