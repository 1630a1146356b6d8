#include "chief/coordination/stream_intake.h"

#include <optional>
#include <thread>

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class StreamIntakeTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    WorkOptions work;
    work.max_steps = kEndlessSteps;
    work.num_records = int64_t{1} << 62;
    work.stream = true;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({Placement(), {"ps-0:1"}}, WorkLedger(work));
    Register(kWorker0, 1);
  }
  v1::StreamStatus status() const { return *coordinator_.reports()->GetStatus().stream; }
};

TEST_F(StreamIntakeTest, AFileEndsTheWaitOfAWorker) {
  EXPECT_FALSE(Acquire(kWorker0, 1).has_value());
  std::optional<WorkLease> lease;
  std::thread worker([&] { lease = Acquire(kWorker0, 1, {}, kLong); });
  coordinator_.stream()->Add("a", 10);
  worker.join();
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->stream_files[0].name(), "a");
  EXPECT_EQ(coordinator_.stream()->newest(), "a");
}

TEST_F(StreamIntakeTest, TheEndEndsTheChiefsWait) {
  coordinator_.stream()->Add("a", 10);
  const auto lease = Acquire(kWorker0, 1);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lease->id, 1)),
            absl::OkStatus());
  std::thread chief([&] {
    coordinator_.control()->WaitForSteps(kEndlessSteps, clock_.Monotonic() + kLong, stop_);
  });
  EXPECT_FALSE(coordinator_.reports()->GetStatus().trained);
  coordinator_.stream()->End();
  coordinator_.stream()->End();
  chief.join();
  EXPECT_TRUE(coordinator_.reports()->GetStatus().trained);
}

TEST_F(StreamIntakeTest, TheStatusSaysHowFarTheStreamIs) {
  EXPECT_EQ(coordinator_.reports()->GetStatus().max_steps, 0);
  EXPECT_EQ(status().file(), "");
  coordinator_.stream()->Add("a", 10);
  coordinator_.stream()->Add("b", 5);
  EXPECT_EQ(status().file(), "a");
  const auto lease = Acquire(kWorker0, 1);
  ASSERT_EQ(coordinator_.members()->Heartbeat(kWorker0, TestId(1), Completed(lease->id, 1)),
            absl::OkStatus());
  EXPECT_EQ(status().file(), "b");
  EXPECT_EQ(status().done_records(), 10);
  EXPECT_EQ(status().known_records(), 15);
  EXPECT_FALSE(status().ended());
  coordinator_.stream()->End();
  EXPECT_TRUE(status().ended());
}

TEST_F(StreamIntakeTest, NoModeWithRounds) {
  const absl::Status status =
      coordinator_.control()->SetMode(ConsistencyMode::Parse("sync:2").value());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the data is a stream"));
  EXPECT_EQ(coordinator_.control()->SetMode(ConsistencyMode::Parse("ssp:3").value()),
            absl::OkStatus());
}

}  // namespace
}  // namespace keelson
