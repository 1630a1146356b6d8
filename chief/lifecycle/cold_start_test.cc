#include "chief/lifecycle/cold_start.h"

#include <atomic>
#include <thread>

#include "chief/lifecycle/next_chief_testing.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_format.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The servers have been restarted, and hold nothing.
class ColdStartTest : public NextChiefTest {
 protected:
  void TearDown() override {
    stop_.Raise();
    if (thread_.joinable()) thread_.join();
  }
  void RestartServers() {
    EndPredecessor();
    for (FakeParameterServer& fake : fakes_) fake.Restart();
  }
  // A chief takes the job up on a thread of its own.
  void Start(const std::vector<v1::ShardStatus>& shards) {
    thread_ = std::thread([this, shards] {
      status_ = cold_start_.Run(shards);
      ended_ = true;
    });
  }
  // Time passes until it has ended.
  void PassUntilItEnds() {
    while (!ended_) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  }

  std::thread thread_;
  absl::Status status_;
  std::atomic<bool> ended_{false};
};

TEST_F(ColdStartTest, AJobBeginsWithInitialValuesWhichItsFirstSnapshotHas) {
  RestartServers();
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  EXPECT_EQ(next_.control()->phase(), JobPhase::kTraining);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.last_restore(), std::nullopt);
}

TEST_F(ColdStartTest, AllServersAreRestoredFromOneSnapshot) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const int64_t newest = SnapshotSteps().back();
  RestartServers();
  // One server can read it, the other one cannot.
  fakes_[1].Damage(newest);
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  EXPECT_EQ(next_.reports()->GetStatus().step, 1);
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.last_restore(), 1);
}

TEST_F(ColdStartTest, ServersTakeItsJobStateForNewerThanTheirOwn) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  EndPredecessor();
  constexpr uint64_t kNewest = uint64_t{1} << 60;
  fakes_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_job_state_version(kNewest); });
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  EXPECT_GT(next_.persistence()->PersistedState().job().state_version(), kNewest);
}

TEST_F(ColdStartTest, AFileThatAServerDoesNotFindIsWaitedFor) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const int64_t newest = SnapshotSteps().back();
  RestartServers();
  const absl::Status missing = absl::NotFoundError("no such file");
  fakes_[1].FailNext(&ParameterControl::Initialize, {missing, missing});
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  for (const FakeParameterServer& fake : fakes_) EXPECT_EQ(fake.last_restore(), newest);
  EXPECT_EQ(next_.reports()->GetStatus().step, newest);
}

TEST_F(ColdStartTest, ASnapshotWhoseIndexStaysMissingIsPassedOver) {
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  DoLease();
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const std::string index = IndexPath(directory_.SnapshotPrefix(SnapshotSteps().back()));
  ASSERT_EQ(RemoveFile(index), absl::OkStatus());
  RestartServers();
  Start(Survey());
  PassUntilItEnds();
  EXPECT_EQ(status_, absl::OkStatus());
  EXPECT_EQ(next_.reports()->GetStatus().step, 1) << "from the snapshot before";
}

TEST_F(ColdStartTest, AJobThatTheServersRememberIsNotBegunAnew) {
  DoLease();
  EndPredecessor();
  Start(Survey());
  PassUntilItEnds();
  EXPECT_EQ(status_.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status_.message()), HasSubstr("the servers know of step 1"));
  EXPECT_THAT(SnapshotSteps(), IsEmpty());
}

TEST_F(ColdStartTest, AStopEndsTheWaitForASnapshot) {
  DoLease();
  EndPredecessor();
  stop_.Raise();
  EXPECT_EQ(cold_start_.Run(Survey()).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(fakes_[0].file_calls_end().raised());
}

}  // namespace
}  // namespace keelson
