#include "chief/reporting/task_figures.h"

#include <cmath>

#include "chief/reporting/figures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

class TaskFiguresTest : public testing::Test {
 protected:
  static constexpr Task kWorker = {Role::kWorker, 1};

  bool Update(double seconds, int64_t steps) {
    return tasks_.Update(absl::Seconds(seconds), {{kWorker, SumsAfter(steps)}}, servers_);
  }
  double Rate() { return tasks_.workers().at(kWorker).steps_per_second(); }

  TaskFigures tasks_{absl::Seconds(2), absl::Seconds(10)};
  std::vector<ServerView> servers_;
};

TEST_F(TaskFiguresTest, TheTimeBeforeTheFirstStepDoesNotCount) {
  EXPECT_FALSE(Update(0, 0));
  EXPECT_TRUE(Update(50, 0));
  EXPECT_THAT(tasks_.workers(), IsEmpty());
  EXPECT_TRUE(Update(52, 20));
  EXPECT_EQ(Rate(), 10);
}

TEST_F(TaskFiguresTest, ASlowStepCountsWithTheTimeItTook) {
  Update(0, 1);
  Update(2, 2);
  EXPECT_EQ(Rate(), 0.5);
  Update(4, 2);
  EXPECT_EQ(Rate(), 0.5) << "it may be in the middle of a step";
  Update(6, 3);
  EXPECT_EQ(Rate(), 0.25);
}

TEST_F(TaskFiguresTest, AWorkerThatStandsStillIsNoticed) {
  Update(0, 1);
  Update(2, 21);
  EXPECT_EQ(Rate(), 10);
  Update(10, 21);
  EXPECT_EQ(Rate(), 10);
  Update(12, 21);
  EXPECT_EQ(Rate(), 0);
  EXPECT_TRUE(std::isnan(tasks_.workers().at(kWorker).staleness()));
}

TEST_F(TaskFiguresTest, ARestartedServerBeginsAnew) {
  servers_.resize(1);
  servers_[0].incarnation = 1;
  servers_[0].pushed_bytes = 1000;
  Update(0, 0);
  servers_[0].pushed_bytes = 1400;
  Update(2, 0);
  EXPECT_EQ(tasks_.servers().at(servers_[0].task).pushed_bytes_per_second, 200);
  servers_[0].incarnation = 2;
  servers_[0].pushed_bytes = 10;
  Update(3, 0);
  EXPECT_THAT(tasks_.servers(), IsEmpty());
  servers_[0].pushed_bytes = 20;
  Update(4, 0);
  EXPECT_EQ(tasks_.servers().at(servers_[0].task).pushed_bytes_per_second, 10);
}

TEST_F(TaskFiguresTest, EvaluatorsDoNotWork) {
  tasks_.Update(absl::ZeroDuration(), {{{Role::kEvaluator, 0}, SumsAfter(1)}}, {});
  tasks_.Update(absl::Seconds(2), {{{Role::kEvaluator, 0}, SumsAfter(2)}}, {});
  EXPECT_THAT(tasks_.workers(), IsEmpty());
}

}  // namespace
}  // namespace keelson
