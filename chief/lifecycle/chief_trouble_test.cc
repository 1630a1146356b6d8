// Chief::Run when the model directory or its disk fails.
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief_run_testing.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ChiefRunTest, TrainingGoesOnWhileSnapshotsFail) {
  options_.config.mutable_checkpoint()->clear_save_seconds();
  options_.config.mutable_checkpoint()->set_save_steps(2);
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  servers_[1].FailSnapshots(2);
  bool retried = false;
  Work(service(), [&] {
    if (retried || StatusOf(service()).step() < 2) return false;
    servers_[1].AwaitSnapshots(4);
    return !(retried = true);
  });
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_TRUE(retried);
  EXPECT_EQ(SnapshotSteps().back(), 10);
}

TEST_F(ChiefRunTest, TheFinalSnapshotIsTriedAgain) {
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  servers_[0].FailSnapshots(3);
  Work(service());
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0, 10));
}

TEST_F(ChiefRunTest, WithoutAFinalSnapshotTheJobIsNotDone) {
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  servers_[0].FailSnapshots(1'000'000);
  WorkToTheLastStep(service());
  Leave(service(), kWorker);
  servers_[0].AwaitSnapshots(8);
  EXPECT_EQ(StatusOf(service()).phase(), v1::FINISHING);
  EXPECT_GE(chief_->snapshot_figures().failures, 5);
  stop_->Raise();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: no space left"));
  EXPECT_FALSE((*directory().ReadDoneMarker()).has_value());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
}

// As with storage that hangs at one server.
TEST_F(ChiefRunTest, AStoppedChiefWaitsForAServersFilesNoLongerThanItMay) {
  options_.leave_within = absl::ZeroDuration();
  Start();
  Join(service(), kWorker);
  Work(service(), [this] { return StatusOf(service()).step() >= 2; });
  servers_[1].Answer(&ParameterControl::WriteSnapshot, [this](const auto&, auto*) {
    servers_[1].file_calls_end().Wait();
    return absl::CancelledError("cancelled");
  });
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(SnapshotSteps(), ElementsAre(0));
  EXPECT_EQ(chief_->snapshot_figures().failures, 1);
}

TEST_F(ChiefRunTest, AChiefThatIsStoppedWhileItRestoresServersDoesNotWaitForThem) {
  servers_[1].Answer(&ParameterControl::Initialize, [this](const auto&, auto*) {
    servers_[1].file_calls_end().Wait();
    return absl::CancelledError("cancelled");
  });
  Start();
  servers_[1].AwaitInitializations(1);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefRunTest, AModelDirectoryThatVanishesStopsNothing) {
  options_.config.mutable_checkpoint()->clear_save_seconds();
  options_.config.mutable_checkpoint()->set_save_steps(2);
  const std::string model_dir = options_.config.checkpoint().model_dir();
  Start();
  Join(service(), kWorker);
  while (SnapshotSteps().empty()) std::this_thread::yield();
  ASSERT_EQ(RenameFile(model_dir, model_dir + ".moved"), absl::OkStatus());
  Work(service());
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(SnapshotSteps().back(), 10);
  EXPECT_TRUE((*directory().ReadDoneMarker()).has_value());
}

TEST_F(ChiefRunTest, AModelDirectoryThatCannotBeUsedIsWaitedFor) {
  const std::string model_dir = options_.config.checkpoint().model_dir();
  Start();
  Join(service(), kWorker);
  // Work is handed out when the first snapshot is whole, without which it would not be.
  Report(service(), Done(AwaitWork(service())));
  ASSERT_EQ(RenameFile(model_dir, model_dir + ".moved"), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(model_dir, "a file"), absl::OkStatus());
  WorkToTheLastStep(service());
  Leave(service(), kWorker);
  while (chief_->snapshot_figures().failures < 3) std::this_thread::yield();
  EXPECT_EQ(StatusOf(service()).phase(), v1::FINISHING);
  ASSERT_EQ(RemoveFile(model_dir), absl::OkStatus());
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_THAT(SnapshotSteps(), ElementsAre(10)) << "the directory was created again";
}

// A job that was killed as a whole after some steps, whose directory lost files.
class LostFilesTest : public ChiefRunTest {
 protected:
  void SetUp() override {
    ChiefRunTest::SetUp();
    options_.config.mutable_checkpoint()->clear_save_seconds();
    options_.config.mutable_checkpoint()->set_save_steps(1);
    options_.missing_patience = absl::Milliseconds(20);
    Start();
    Join(service(), kWorker);
    Report(service(), Done(AwaitWork(service())));
    while (SnapshotSteps().size() < 2) std::this_thread::yield();
    AwaitStored();
    Kill();
  }
  void RestartServers() {
    for (FakeParameterServer& server : servers_) server.Restart();
  }
  std::string PathOf(const std::string& name) const {
    return JoinPath(options_.config.checkpoint().model_dir(), name);
  }
};

TEST_F(LostFilesTest, WithoutItsStateFileTheJobDoesNotBeginAnew) {
  RestartServers();
  const int64_t newest = SnapshotSteps().back();
  const std::string state = *ReadFile(PathOf("checkpoint"));
  ASSERT_EQ(RemoveFile(PathOf("checkpoint")), absl::OkStatus());
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected a file \"checkpoint\""));
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  ASSERT_EQ(WriteFileAtomically(PathOf("checkpoint"), state), absl::OkStatus());
  Start();
  servers_[0].AwaitInitializations(2);
  EXPECT_EQ(LastRestore(0), newest) << "all its files are there";
}

TEST_F(LostFilesTest, ANewestSnapshotThatAppearsLateIsWaitedFor) {
  RestartServers();
  options_.missing_patience = absl::Minutes(10);
  const int64_t newest = SnapshotSteps().back();
  const std::string index = PathOf(absl::StrCat("model.ckpt-", newest, ".index"));
  ASSERT_EQ(RenameFile(index, index + ".away"), absl::OkStatus());
  Start();
  AwaitStatusFile();
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
  ASSERT_EQ(RenameFile(index + ".away", index), absl::OkStatus());
  servers_[0].AwaitInitializations(2);
  EXPECT_EQ(LastRestore(0), newest);
}

TEST_F(LostFilesTest, WhatTheServersRememberIsNotBegunAnew) {
  options_.startup_timeout = absl::Milliseconds(20);
  // Their processes were replaced, and told the job's state before the chief was killed, too.
  for (FakeParameterServer& server : servers_) {
    server.EditStatus([](v1::ShardStatus* shard) { shard->set_state(v1::ShardStatus::EMPTY); });
  }
  std::filesystem::remove_all(options_.config.checkpoint().model_dir());
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("although the servers know of step"));
  EXPECT_EQ(servers_[0].initializations().size(), 1u);
}

TEST_F(LostFilesTest, WhatTheJobFileRemembersIsNotBegunAnew) {
  RestartServers();
  options_.startup_timeout = absl::Milliseconds(20);
  std::filesystem::remove_all(options_.config.checkpoint().model_dir());
  DirectoryOwner::Options owner;
  owner.model_dir = options_.config.checkpoint().model_dir();
  owner.self.set_owner(1);
  owner.self.set_lease_seconds(20);
  auto taken = DirectoryOwner::Take(std::move(owner), FileSystem::Real(), &clock_, stop_.get());
  ASSERT_TRUE(taken.ok()) << taken.status();
  (*taken)->NoteSnapshot(7);
  options_.owner = *std::move(taken);
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its file JOB knows of step 7"));
}

// All files in memory, so that the disk can fill up.
class FullDiskTest : public ChiefRunTest {
 protected:
  void SetUp() override {
    ChiefRunTest::SetUp();
    options_.file_system = &files_;
    options_.config.mutable_checkpoint()->set_model_dir("/model");
    options_.config.mutable_checkpoint()->set_save_steps(2);
  }
  void Start(const Clock* clock = Clock::Real()) {
    ++options_.incarnation;
    auto chief = Chief::Create(options_, {{"ps-0", "a:1", &server_}}, clock, stop_.get());
    ASSERT_TRUE(chief.ok()) << chief.status();
    chief_ = *std::move(chief);
    thread_ = std::thread([this] { status_ = chief_->Run(); });
  }
  int64_t LatestStep() {
    return CheckpointDirectory(&files_, "/model", Clock::Real()).List()->back().step;
  }

  MemoryFileSystem files_;
  FakeParameterServer server_{&files_, "/model"};
};

TEST_F(FullDiskTest, TrainingGoesOnAndTheJobEndsWhenThereIsRoom) {
  Start();
  Join(service(), kWorker);
  AwaitPhase(service(), v1::TRAINING);
  files_.SetCapacity(files_.used_bytes() + 100);
  WorkToTheLastStep(service());
  Leave(service(), kWorker);
  while (chief_->snapshot_figures().failures < 3) std::this_thread::yield();
  EXPECT_EQ(StatusOf(service()).phase(), v1::FINISHING);
  EXPECT_EQ(LatestStep(), 0);
  EXPECT_FALSE(*files_.Exists("/model/DONE"));
  files_.SetCapacity(1 << 20);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(LatestStep(), 10);
  EXPECT_TRUE(*files_.Exists("/model/DONE"));
  const std::vector<std::string> names = *files_.List("/model");
  for (const std::string& name : names) {
    EXPECT_THAT(name, Not(HasSubstr("tempstate")));
  }
}

// As a network file system may, whose cache remembers that a name was missing.
TEST_F(FullDiskTest, APartThatIsOutOfSightWhenItGetsItsNameIsWrittenAgain) {
  std::atomic<int> hidden = 2;
  files_.SetFault([&](absl::string_view operation, const std::string& path) {
    const bool part = operation == "rename" && absl::EndsWith(path, ".data-00001-of-00002");
    return part && hidden-- > 0 ? absl::NotFoundError(path + ": no such file") : absl::OkStatus();
  });
  Start();
  Join(service(), kWorker);
  Work(service());
  Leave(service(), kWorker);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(chief_->snapshot_figures().failures, 2);
  EXPECT_EQ(LatestStep(), 10);
}

// Between its survey and its decision a chief would not notice what happens to servers.
TEST_F(FullDiskTest, AServerThatIsRestartedWhileTheDirectoryIsWaitedForHoldsNoJob) {
  options_.config.mutable_checkpoint()->set_save_steps(1000);
  Start();
  Join(service(), kWorker);
  Report(service(), Done(AwaitWork(service())));
  const uint64_t version =
      chief_->coordinator()->persistence()->PersistedState().job().state_version();
  while (server_.shard().job_state_version() < version) std::this_thread::yield();
  server_.FailSnapshots(1'000'000);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
  server_.FailSnapshots(0);
  chief_ = nullptr;
  stop_ = std::make_unique<StopSignal>();
  std::atomic<bool> errs = true;
  std::atomic<int> looks = 0;
  files_.SetFault([&](absl::string_view operation, const std::string& path) {
    if (!errs || operation != "look" || path != "/model/checkpoint") return absl::OkStatus();
    ++looks;
    return absl::UnavailableError(path + ": the server does not answer");
  });
  Start();
  while (looks < 2) std::this_thread::yield();
  server_.Restart();
  errs = false;
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(StatusOf(service()).step(), 0) << "that of the snapshot, whose values it has";
  EXPECT_EQ(server_.last_restore(), 0);
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(FullDiskTest, StorageThatHangsKeepsNoLostMember) {
  StopSignal release;
  std::atomic<bool> hangs = false;
  std::atomic<bool> hung = false;
  files_.SetFault([&](absl::string_view, const std::string& path) {
    if (hangs && absl::StrContains(path, "status.json")) {
      hung = true;
      release.WaitFor(absl::InfiniteDuration());
    }
    return absl::OkStatus();
  });
  Start(&clock_);
  Join(service(), kWorker);
  AwaitPhase(service(), v1::TRAINING);
  hangs = true;
  const auto lost = [this] {
    const std::vector<Member> members = chief_->coordinator()->reports()->GetStatus().members;
    return members.size() == 1 && members[0].state == Member::kLost;
  };
  while (!hung) {
    clock_.Advance(absl::Milliseconds(100));
    Report(service(), {});
    std::this_thread::yield();
  }
  while (!lost()) {
    clock_.Advance(absl::Milliseconds(100));
    std::this_thread::yield();
  }
  EXPECT_TRUE(hung);
  release.Raise();
  stop_->Raise();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

// A directory that becomes read-only.
class ReadOnlyTest : public FullDiskTest {
 protected:
  void SetReadOnly(bool read_only) {
    files_.SetFault([read_only](absl::string_view operation, const std::string& path) {
      const bool written = operation != "look" && operation != "lock" && operation != "create";
      return read_only && written ? absl::PermissionDeniedError(path + ": read-only")
                                  : absl::OkStatus();
    });
  }
  void TakeDirectory() {
    DirectoryOwner::Options owner;
    owner.model_dir = "/model";
    owner.self.set_owner(options_.incarnation + 1);
    owner.self.set_lease_seconds(20);
    auto taken = DirectoryOwner::Take(std::move(owner), &files_, Clock::Real(), stop_.get());
    ASSERT_TRUE(taken.ok()) << taken.status();
    options_.owner = *std::move(taken);
  }
  void StartAsOwner() {
    TakeDirectory();
    Start();
  }
  void KillOwner() {
    server_.FailSnapshots(1'000'000);
    stop_->Raise();
    EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
    server_.FailSnapshots(0);
    chief_ = nullptr;
    options_.owner = nullptr;
    stop_ = std::make_unique<StopSignal>();
  }
  // Runs a chief until it has written a snapshot of some steps, and ends it.
  void TrainSome() {
    StartAsOwner();
    Join(service(), kWorker);
    v1::WorkerProgress progress;
    while (StatusOf(service()).step() < 3) progress = Done(Acquire(service(), progress));
    while (LatestStep() == 0) std::this_thread::yield();
    const uint64_t version =
        chief_->coordinator()->persistence()->PersistedState().job().state_version();
    while (server_.shard().job_state_version() < version) std::this_thread::yield();
    KillOwner();
  }
};

TEST_F(ReadOnlyTest, ARestartedChiefTakesTheRunningJobUp) {
  TrainSome();
  files_.SetContent("/model/model.ckpt-9.data-00000-of-00002", "left by its predecessor");
  const int64_t saved = LatestStep();
  SetReadOnly(true);
  StartAsOwner();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_GE(StatusOf(service()).step(), saved);
  Join(service(), kWorker);
  WorkToTheLastStep(service());
  Leave(service(), kWorker);
  while (chief_->snapshot_figures().failures < 2) std::this_thread::yield();
  EXPECT_EQ(StatusOf(service()).step(), 10);
  EXPECT_EQ(server_.initializations().size(), 1u) << "it kept its values";
  SetReadOnly(false);
  ASSERT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(LatestStep(), 10);
}

// A server writes its part to the end when its chief has died and no other has come.
TEST_F(ReadOnlyTest, WhatAServerWroteForAChiefThatIsGoneIsRemovedByTheNextOne) {
  TrainSome();
  const std::string pending = "/model/model.ckpt-9.data-00000-of-00002.tempstate1-c0ffee";
  files_.SetContent(pending, "a whole part");
  files_.SetContent(pending + ".tempstate2", "half of one");
  files_.SetContent("/model/model.ckpt-notes.txt", "the user's");
  const std::vector<SnapshotInfo> committed =
      *CheckpointDirectory(&files_, "/model", Clock::Real()).List();
  StartAsOwner();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_FALSE(*files_.Exists(pending));
  EXPECT_FALSE(*files_.Exists(pending + ".tempstate2"));
  EXPECT_TRUE(*files_.Exists("/model/model.ckpt-notes.txt"));
  for (const SnapshotInfo& snapshot : committed) {
    for (const std::string& path : {IndexPath(snapshot.prefix), DataPath(snapshot.prefix, 0, 2),
                                    DataPath(snapshot.prefix, 1, 2)}) {
      EXPECT_TRUE(*files_.Exists(path)) << path;
    }
  }
  KillOwner();
}

TEST_F(ReadOnlyTest, AJobThatDoesNotRunIsNotBegunThere) {
  TrainSome();
  server_.Restart();
  SetReadOnly(true);
  options_.startup_timeout = absl::Milliseconds(20);
  StartAsOwner();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ReadOnlyTest, AJobThatDoesNotRunWaitsUntilItsDirectoryCanBeWritten) {
  TrainSome();
  const int64_t saved = LatestStep();
  server_.Restart();
  SetReadOnly(true);
  StartAsOwner();
  server_.AwaitProbes(1);
  EXPECT_LT(StatusOf(service()).phase(), v1::TRAINING);
  SetReadOnly(false);
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_GE(StatusOf(service()).step(), saved);
  KillOwner();
}

TEST_F(ReadOnlyTest, TheFirstSnapshotWaitsUntilTheDirectoryCanBeWritten) {
  TakeDirectory();
  SetReadOnly(true);
  Start();
  while (chief_->snapshot_figures().failures < 2) std::this_thread::yield();
  EXPECT_LT(StatusOf(service()).phase(), v1::TRAINING);
  SetReadOnly(false);
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(LatestStep(), 0);
  KillOwner();
}

TEST_F(ChiefRunTest, AtTheStartAModelDirectoryThatCannotBeUsedIsAnError) {
  const std::string file = JoinPath(options_.config.checkpoint().model_dir(), "file");
  ASSERT_EQ(WriteFileAtomically(file, ""), absl::OkStatus());
  options_.config.mutable_checkpoint()->set_model_dir(JoinPath(file, "model"));
  const auto chief = Chief::Create(options_, {{"ps-0", "a:1", &servers_[0]}}, &clock_, stop_.get());
  EXPECT_THAT(std::string(chief.status().message()), HasSubstr(file));
}

}  // namespace
}  // namespace keelson
