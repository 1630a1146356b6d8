#include "chief/reporting/task_history.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/reporting/figures_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TaskHistoryTest : public testing::Test {
 protected:
  static constexpr Task kWorker = {Role::kWorker, 1};

  void Advance(absl::Duration by, int64_t steps) {
    clock_.Advance(by);
    status_.workers[kWorker] = SumsAfter(steps);
    status_.totals = SumsAfter(steps);
    status_.step = steps;
    ASSERT_EQ(history_.Update(status_, servers_), absl::OkStatus());
  }
  // "step: tag=value …" of each event beyond the first, which tells the version.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const auto names = ListDirectory(directory_ + "/tasks");
    if (!names.ok()) return events;
    for (const std::string& name : *names) {
      const auto records = ReadTfRecords(directory_ + "/tasks/" + name);
      EXPECT_TRUE(records.ok()) << records.status();
      for (size_t i = 1; i < records->size(); ++i) {
        v1::Event event;
        EXPECT_TRUE(event.ParseFromString((*records)[i]));
        std::string& line = events.emplace_back(absl::StrCat(event.step(), ":"));
        for (const v1::Summary::Value& value : event.summary().value()) {
          absl::StrAppend(&line, " ", value.tag(), "=", value.simple_value());
        }
      }
    }
    return events;
  }

  const std::string directory_ = FreshDirectory();
  ManualClock clock_;
  TaskHistory history_{directory_, &clock_, FileSystem::Real()};
  CoordinatorStatus status_;
  std::vector<ServerView> servers_;
};

TEST_F(TaskHistoryTest, OneEventInHalfAMinuteAndOneAtTheEnd) {
  servers_.resize(1);
  servers_[0].incarnation = 1;
  Advance(absl::ZeroDuration(), 0);
  Advance(absl::Seconds(29), 15);
  EXPECT_THAT(Events(), IsEmpty());
  servers_[0].pushed_bytes = 60;
  Advance(absl::Seconds(1), 30);
  EXPECT_THAT(Events(),
              ElementsAre("30: worker-1/steps_per_second=1 worker-1/examples_per_second=10 "
                          "worker-1/staleness=2 worker-1/pushed_bytes_per_second=100 "
                          "worker-1/pulled_bytes_per_second=200 worker-1/input_seconds=0 "
                          "worker-1/pull_seconds=0 worker-1/compute_seconds=0.25 "
                          "worker-1/push_seconds=0 ps-0/pushed_bytes_per_second=2 "
                          "ps-0/pulled_bytes_per_second=0"));
  Advance(absl::Seconds(10), 50);
  ASSERT_EQ(history_.Finish(status_, servers_), absl::OkStatus());
  ASSERT_EQ(history_.Finish(status_, servers_), absl::OkStatus());
  ASSERT_THAT(Events(), SizeIs(2));
  EXPECT_TRUE(absl::StartsWith(Events()[1], "50: worker-1/steps_per_second=2 ")) << Events()[1];
}

TEST_F(TaskHistoryTest, AWorkerThatStandsStillHasNoMeans) {
  Advance(absl::ZeroDuration(), 10);
  Advance(absl::Seconds(30), 20);
  Advance(absl::Seconds(30), 20);
  ASSERT_THAT(Events(), SizeIs(2));
  EXPECT_EQ(Events()[1],
            "20: worker-1/steps_per_second=0 worker-1/examples_per_second=0 "
            "worker-1/pushed_bytes_per_second=0 worker-1/pulled_bytes_per_second=0");
}

TEST_F(TaskHistoryTest, AnEventThatCannotBeWrittenIsTold) {
  ASSERT_EQ(WriteFileAtomically(directory_ + "/tasks", "a file"), absl::OkStatus());
  Advance(absl::ZeroDuration(), 10);
  clock_.Advance(absl::Seconds(30));
  status_.workers[kWorker] = SumsAfter(20);
  EXPECT_FALSE(history_.Update(status_, servers_).ok());
}

}  // namespace
}  // namespace keelson
