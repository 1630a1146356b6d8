#include "chief/lifecycle/cold_start.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
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
using ::testing::SizeIs;

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
  // ps-1 is restarted empty when it writes its part of the next snapshot. `and_then`: what else
  // happens then.
  void LoseServerInFirstSnapshot(std::function<void()> and_then) {
    fakes_[1].After(&ParameterControl::WriteSnapshot, [this, and_then](const auto&, auto*) {
      if (lost_.exchange(true)) return absl::OkStatus();
      fakes_[1].Restart();
      and_then();
      return absl::UnavailableError("connection reset");
    });
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

  std::atomic<bool> lost_{false};  // LoseServerInFirstSnapshot has happened
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

TEST_F(ColdStartTest, AServerThatIsRestartedBeforeTheFirstSnapshotIsMadeAgain) {
  RestartServers();
  LoseServerInFirstSnapshot([] {});
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  EXPECT_EQ(next_.control()->phase(), JobPhase::kTraining);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
  EXPECT_THAT(fakes_[0].initializations(), SizeIs(2)) << "one of them by the predecessor";
  EXPECT_THAT(fakes_[1].initializations(), SizeIs(3));
  EXPECT_EQ(fakes_[1].last_restore(), std::nullopt);
}

TEST_F(ColdStartTest, AfterItsCommitTheServerIsRestoredFromTheFirstSnapshot) {
  ASSERT_EQ(snapshots_.Write(), absl::OkStatus());
  const std::string away = JoinPath(FreshDirectory(), "model");
  std::filesystem::rename(directory_.model_dir(), away);
  ASSERT_TRUE(std::filesystem::create_directory(directory_.model_dir()));
  RestartServers();
  LoseServerInFirstSnapshot([&] {
    std::filesystem::remove_all(directory_.model_dir());
    std::filesystem::rename(away, directory_.model_dir());
  });
  ASSERT_EQ(cold_start_.Run(Survey()), absl::OkStatus());
  EXPECT_EQ(next_.control()->phase(), JobPhase::kTraining);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
  EXPECT_EQ(fakes_[0].last_restore(), std::nullopt);
  EXPECT_EQ(fakes_[1].last_restore(), 0);
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
