#include "core/checkpoint/checkpoint_directory.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/failing_file_system_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/table_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointDirectoryTest : public testing::Test {
 protected:
  // Files of a snapshot; their content does not matter here.
  void WriteSnapshot(int64_t step) {
    const std::string prefix = directory_.SnapshotPrefix(step);
    WriteRawFile(DataPath(prefix, 0, 1), "data");
    WriteRawFile(IndexPath(prefix), "index");
  }
  void WriteAndCommit(int64_t step, const RetentionPolicy& policy = {}) {
    WriteSnapshot(step);
    const absl::Status status = directory_.Commit(step, policy);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    const auto snapshots = directory_.List();
    EXPECT_TRUE(snapshots.ok()) << snapshots.status();
    for (const SnapshotInfo& snapshot : *snapshots) steps.push_back(snapshot.step);
    return steps;
  }
  absl::Status RemoveStaleFiles() {
    const std::vector<std::string> temporaries = *directory_.ListTemporaries();
    RETURN_IF_ERROR(directory_.RemoveStaleSnapshots());
    return directory_.RemoveStaleFiles(temporaries);
  }
  // Steps whose index is on disk.
  std::vector<int64_t> StepsOnDisk() {
    std::vector<int64_t> steps;
    for (int64_t step = 0; step <= 1000; ++step) {
      if (FileExists(IndexPath(directory_.SnapshotPrefix(step)))) steps.push_back(step);
    }
    return steps;
  }

  ManualClock clock_;
  const std::string path_ = FreshDirectory();
  const std::string state_path_ = JoinPath(path_, "checkpoint");
  CheckpointDirectory directory_{FileSystem::Real(), path_, &clock_};
};

TEST_F(CheckpointDirectoryTest, EmptyDirectoryHasNoSnapshots) { EXPECT_THAT(Steps(), IsEmpty()); }

TEST_F(CheckpointDirectoryTest, CommitWritesTensorFlowsStateFile) {
  WriteAndCommit(0);
  clock_.Advance(absl::Seconds(10));
  WriteAndCommit(100);
  EXPECT_EQ(
      ReadRawFile(state_path_),
      "model_checkpoint_path: \"model.ckpt-100\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-0\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
      "all_model_checkpoint_timestamps: 1700000000\n"
      "all_model_checkpoint_timestamps: 1700000010\n"
      // TensorFlow's CheckpointManager takes a snapshot that is not newer for one that must stay.
      "last_preserved_timestamp: 1699999999\n");
}

TEST_F(CheckpointDirectoryTest, NamesWithoutAStepAreForThoseWhoOnlyRead) {
  WriteRawFile(state_path_,
               "model_checkpoint_path: \"model.ckpt\"\n"
               "all_model_checkpoint_paths: \"cp-0001.ckpt\"\n"
               "all_model_checkpoint_paths: \"model.ckpt\"\n");
  const absl::Status status = directory_.ListNamed().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'cp-0001.ckpt' does not end in -<step>; keelson_ckpt import"));
  const auto named = CheckpointDirectory(FileSystem::Real(), path_, &clock_, ForeignPaths::kRefused,
                                         SnapshotNames::kAny)
                         .ListNamed();
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ((*named)[0].step, kNoStep);
  EXPECT_EQ((*named)[1].prefix, JoinPath(path_, "model.ckpt"));
}

TEST_F(CheckpointDirectoryTest, ListIsOldestFirstWithPrefixAndTime) {
  WriteAndCommit(0);
  clock_.Advance(absl::Seconds(10));
  WriteAndCommit(100);
  const auto snapshots = directory_.List();
  ASSERT_TRUE(snapshots.ok());
  ASSERT_EQ(snapshots->size(), 2u);
  EXPECT_EQ((*snapshots)[0].step, 0);
  EXPECT_EQ((*snapshots)[1].prefix, path_ + "/model.ckpt-100");
  EXPECT_EQ((*snapshots)[1].time, clock_.Now());
}

TEST_F(CheckpointDirectoryTest, AChosenSnapshotOutlivesTheRetention) {
  for (const int64_t step : {1, 2, 3}) WriteAndCommit(step);
  WriteAndCommit(4, {.keep_max = 1, .kept_step = 2});
  EXPECT_THAT(Steps(), ElementsAre(2, 4));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(2, 4));
  WriteAndCommit(5, {.keep_max = 1});
  EXPECT_THAT(Steps(), ElementsAre(5));
}

class ChainDirectoryTest : public CheckpointDirectoryTest {
 protected:
  // A delta on `base`; whole: kNoStep.
  void CommitLink(int64_t step, int64_t base, const RetentionPolicy& policy) {
    TestLink link = {NameOf(step)};
    if (base != kNoStep) link.base = NameOf(base);
    link.all.resize(1);
    link.erased.resize(1);
    for (const auto& [id, row] : table_.rows) link.all[0].insert(id);
    WriteTables(FileSystem::Real(), directory_.SnapshotPrefix(step), {table_}, 1, nullptr, link);
    const absl::Status status = directory_.Commit(step, policy);
    ASSERT_TRUE(status.ok()) << status;
  }
  static v1::SnapshotBase NameOf(int64_t step) {
    return TestSnapshotName(step, static_cast<uint64_t>(1000 + step));
  }

  const TestTable table_ = UsersTable(3);
};

TEST_F(ChainDirectoryTest, WhatADeltaBuildsOnOutlivesTheRetention) {
  const RetentionPolicy policy = {.keep_max = 2};
  CommitLink(1, kNoStep, policy);
  CommitLink(2, 1, policy);
  CommitLink(3, 2, policy);
  CommitLink(4, 3, policy);
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3, 4));
  CommitLink(5, kNoStep, policy);
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3, 4, 5));
  CommitLink(6, 5, policy);
  EXPECT_THAT(Steps(), ElementsAre(5, 6));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(5, 6));
}

TEST_F(ChainDirectoryTest, OnlyWholeSnapshotsArePreservedEveryFewHours) {
  const RetentionPolicy policy = {.keep_max = 1, .keep_every_n_hours = 1};
  for (int64_t step = 1; step <= 7; ++step) {
    CommitLink(step, step % 3 == 1 ? kNoStep : step - 1, policy);
    clock_.Advance(absl::Hours(2));
  }
  EXPECT_THAT(Steps(), ElementsAre(7));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(4, 7));
}

TEST_F(ChainDirectoryTest, ADamagedDeltaDoesNotCostTheChainBelowIt) {
  const RetentionPolicy policy = {.keep_max = 2};
  CommitLink(1, kNoStep, policy);
  CommitLink(2, 1, policy);
  CommitLink(3, 2, policy);
  WriteRawFile(IndexPath(directory_.SnapshotPrefix(3)), "index");
  CommitLink(4, 3, policy);
  CommitLink(5, 4, policy);
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(ChainDirectoryTest, NothingIsDeletedWhereItIsNotKnownWhatASnapshotBuildsOn) {
  const RetentionPolicy policy = {.keep_max = 1};
  CommitLink(1, kNoStep, policy);
  // Of a newer format.
  WriteTables(FileSystem::Real(), directory_.SnapshotPrefix(2), {table_}, 1,
              [](v1::ShardState* state) { state->set_format(99); });
  ASSERT_TRUE(directory_.Commit(2, policy).ok());
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
}

TEST_F(CheckpointDirectoryTest, RollBackMakesAnEarlierSnapshotTheLatest) {
  for (const int64_t step : {1, 2, 3}) WriteAndCommit(step);
  const absl::Status status = directory_.RollBack(7);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no snapshot of step 7, expected one of 1, 2, 3"));
  ASSERT_EQ(directory_.RollBack(2), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 2, 3));
  ASSERT_EQ(RemoveStaleFiles(), absl::OkStatus());
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 2));
}

TEST_F(CheckpointDirectoryTest, CommitsOnlyToTheListThatItHasRead) {
  WriteAndCommit(1);
  WriteSnapshot(2);
  WriteSnapshot(3);
  const absl::Status status =
      directory_.Commit(2, {.keep_max = 1}, [this] { return directory_.Commit(3, {}); });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 2, 3)) << "nor does it delete";
  EXPECT_EQ(directory_.Commit(2, {}, [] { return absl::UnavailableError("unknown"); }),
            absl::UnavailableError("unknown"));
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
}

TEST_F(CheckpointDirectoryTest, CommitWantsAnIndex) {
  const absl::Status status = directory_.Commit(5, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-5.index"));
}

// As a network file system may, which remembers for a while that a name was missing.
class ForgetfulFileSystem : public FailingFileSystem {
 public:
  void Hide(std::string path, int looks) {
    hidden_ = std::move(path);
    looks_ = looks;
  }
  absl::StatusOr<bool> Exists(const std::string& path) override {
    if (path == hidden_ && looks_-- > 0) return false;
    return FailingFileSystem::Exists(path);
  }

 private:
  std::string hidden_;
  int looks_ = 0;
};

TEST_F(CheckpointDirectoryTest, AnIndexThatALookUpMissesIsCommittedOrWaitedFor) {
  ForgetfulFileSystem files;
  CheckpointDirectory directory(&files, path_, &clock_);
  const std::string index = IndexPath(directory.SnapshotPrefix(1));
  WriteSnapshot(1);
  files.Hide(index, 2);
  const absl::Status status = directory.Commit(1, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(index));
  files.Hide(index, 1);
  EXPECT_EQ(directory.Commit(1, {}), absl::OkStatus());
  EXPECT_THAT(Steps(), ElementsAre(1));
}

TEST_F(CheckpointDirectoryTest, CommittingAStepAgainMakesItTheLatest) {
  WriteAndCommit(100);
  WriteAndCommit(200);
  WriteAndCommit(100);
  EXPECT_THAT(Steps(), ElementsAre(200, 100));
}

TEST_F(CheckpointDirectoryTest, ReadsWhatTensorFlowWrites) {
  WriteSnapshot(1);
  WriteSnapshot(2);
  WriteRawFile(state_path_,
               absl::StrCat("model_checkpoint_path: \"", path_, "/model.ckpt-2\"\n",
                            "all_model_checkpoint_paths: \"model.ckpt-1\"\n",
                            "all_model_checkpoint_paths: \"", path_, "/model.ckpt-2\"\n"));
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
  WriteAndCommit(3, {.keep_max = 2});
  EXPECT_THAT(Steps(), ElementsAre(2, 3));
  EXPECT_THAT(ReadRawFile(state_path_), HasSubstr("paths: \"model.ckpt-2\"\n"));
}

TEST_F(CheckpointDirectoryTest, StateThatNamesOnlyTheLatest) {
  WriteSnapshot(7);
  WriteRawFile(state_path_, "model_checkpoint_path: \"model.ckpt-7\"\n");
  EXPECT_THAT(Steps(), ElementsAre(7));
}

TEST_F(CheckpointDirectoryTest, VanishedSnapshotsAreLeftOut) {
  for (const int64_t step : {1, 2, 3}) WriteAndCommit(step);
  ASSERT_TRUE(RemoveFile(IndexPath(directory_.SnapshotPrefix(3))).ok());
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
}

TEST_F(CheckpointDirectoryTest, GarbageIsDataLossNamingTheFile) {
  for (const char* text :
       {"", "\x01\x02 garbage", "model_checkpoint_path: 5", "no_such_field: 1",
        "model_checkpoint_path: \"model.ckpt\"", "model_checkpoint_path: \"model.ckpt-x\""}) {
    WriteRawFile(state_path_, text);
    for (const absl::Status& status : {directory_.List().status(), RemoveStaleFiles()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
      EXPECT_THAT(std::string(status.message()), HasSubstr(state_path_));
    }
  }
}

TEST_F(CheckpointDirectoryTest, PathsThatLeadElsewhereAreRefused) {
  const std::string elsewhere = FreshDirectory();
  WriteRawFile(elsewhere + "/model.ckpt-1.index", "index");
  ASSERT_EQ(symlink(elsewhere.c_str(), JoinPath(path_, "link").c_str()), 0);
  WriteSnapshot(2);
  for (const std::string& path :
       {elsewhere + "/model.ckpt-1", "../" + BaseName(elsewhere) + "/model.ckpt-1",
        std::string("link/model.ckpt-1"), path_ + "/../" + BaseName(elsewhere) + "/model.ckpt-1",
        std::string("/nowhere/model.ckpt-1")}) {
    const std::string state =
        absl::StrCat("model_checkpoint_path: \"model.ckpt-2\"\n", "all_model_checkpoint_paths: \"",
                     path, "\"\n", "all_model_checkpoint_paths: \"model.ckpt-2\"\n");
    WriteRawFile(state_path_, state);
    const absl::Status refused = absl::DataLossError(
        absl::StrCat(state_path_, ": not a checkpoint state file: '", path,
                     "': expected a snapshot in ", path_, ", found a path that leads elsewhere"));
    EXPECT_EQ(directory_.List().status(), refused);
    EXPECT_EQ(RemoveStaleFiles(), refused);
    EXPECT_EQ(directory_.Commit(2, {.keep_max = 1}), refused);
    EXPECT_EQ(ReadRawFile(state_path_), state);
    EXPECT_EQ(directory_.FindSnapshot(1), path_ + "/model.ckpt-1");
  }
  EXPECT_TRUE(FileExists(elsewhere + "/model.ckpt-1.index"));
  WriteRawFile(state_path_, "model_checkpoint_path: \"" + elsewhere + "/model.ckpt-1\"\n");
  const CheckpointDirectory reader(FileSystem::Real(), path_, &clock_, ForeignPaths::kFollowed);
  EXPECT_EQ(reader.List()->at(0).prefix, elsewhere + "/model.ckpt-1");
}

TEST_F(CheckpointDirectoryTest, PathsThatLieInsideAreThoseOfTheDirectory) {
  ASSERT_TRUE(CreateDirectories(JoinPath(path_, "best")).ok());
  const std::string link = FreshDirectory() + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  WriteRawFile(state_path_,
               absl::StrCat("model_checkpoint_path: \"", link, "/model.ckpt-2\"\n",
                            "all_model_checkpoint_paths: \"best/ckpt-1\"\n",
                            "all_model_checkpoint_paths: \"", link, "/model.ckpt-2\"\n"));
  const auto named = directory_.ListNamed();
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->at(0).prefix, path_ + "/best/ckpt-1");
  EXPECT_EQ(named->at(1).prefix, path_ + "/model.ckpt-2");
  EXPECT_EQ(directory_.FindSnapshot(1), path_ + "/best/ckpt-1");
  EXPECT_EQ(directory_.FindSnapshot(2), directory_.SnapshotPrefix(2));
  EXPECT_EQ(directory_.FindSnapshot(3), directory_.SnapshotPrefix(3));
}

TEST_F(CheckpointDirectoryTest, KeepMaxDeletesAllFilesOfAllSurplus) {
  for (const int64_t step : {1, 10, 100, 200}) WriteAndCommit(step, {.keep_max = 0});
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 10, 100, 200));
  WriteRawFile(directory_.SnapshotPrefix(10) + ".meta", "graph");
  WriteAndCommit(300, {.keep_max = 2});
  EXPECT_THAT(Steps(), ElementsAre(200, 300));
  EXPECT_THAT(
      *ListDirectory(path_),
      ElementsAre("checkpoint", "model.ckpt-200.data-00000-of-00001", "model.ckpt-200.index",
                  "model.ckpt-300.data-00000-of-00001", "model.ckpt-300.index"));
}

TEST_F(CheckpointDirectoryTest, ASurplusFileThatCannotBeDeletedIsLeft) {
  WriteAndCommit(1);
  const std::string stuck = directory_.SnapshotPrefix(1) + ".directory";
  ASSERT_TRUE(CreateDirectories(stuck).ok());
  WriteAndCommit(2, {.keep_max = 1});
  EXPECT_THAT(Steps(), ElementsAre(2));
  EXPECT_TRUE(FileExists(stuck));
}

TEST_F(CheckpointDirectoryTest, CommitFailsWhenTheStateCannotBeWritten) {
  WriteSnapshot(1);
  ASSERT_TRUE(CreateDirectories(JoinPath(state_path_, "x")).ok());
  const absl::Status status = directory_.Commit(1, {});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(state_path_));
}

TEST_F(CheckpointDirectoryTest, ALostStateFileNamesTheSnapshotsAgain) {
  for (const int64_t step : {20, 100}) WriteAndCommit(step);
  WriteSnapshot(300);  // complete, but never committed
  ASSERT_EQ(RemoveFile(state_path_), absl::OkStatus());
  WriteAndCommit(200, {.keep_max = 1});
  EXPECT_THAT(Steps(), ElementsAre(20, 100, 200));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(20, 100, 200, 300));
  WriteAndCommit(400, {.keep_max = 2});
  EXPECT_THAT(Steps(), ElementsAre(200, 400));
}

TEST_F(CheckpointDirectoryTest, KeepEveryNHoursPreserves) {
  // One snapshot each half hour; from those that fall out one per hour stays.
  const RetentionPolicy policy = {.keep_max = 1, .keep_every_n_hours = 1};
  for (int64_t step = 0; step < 7; ++step) {
    WriteAndCommit(step, policy);
    clock_.Advance(absl::Minutes(30));
  }
  EXPECT_THAT(Steps(), ElementsAre(6));
  EXPECT_THAT(StepsOnDisk(), ElementsAre(2, 4, 6));
  // Nor does a restart remove them.
  ASSERT_TRUE(RemoveStaleFiles().ok());
  EXPECT_THAT(StepsOnDisk(), ElementsAre(2, 4, 6));
}

TEST_F(CheckpointDirectoryTest, AClockThatWentBackStillPreserves) {
  const RetentionPolicy policy = {.keep_max = 1, .keep_every_n_hours = 1};
  WriteAndCommit(1, policy);
  ManualClock earlier(clock_.Now() - absl::Hours(1000));
  CheckpointDirectory directory(FileSystem::Real(), path_, &earlier);
  for (const int64_t step : {2, 3, 4, 5}) {
    WriteSnapshot(step);
    ASSERT_TRUE(directory.Commit(step, policy).ok());
    earlier.Advance(absl::Hours(2));
  }
  EXPECT_THAT(StepsOnDisk(), testing::Contains(4));
}

TEST_F(CheckpointDirectoryTest, RemoveStaleFiles) {
  WriteAndCommit(100);
  WriteSnapshot(50);   // preserved
  WriteSnapshot(200);  // complete, but never committed
  WriteRawFile(DataPath(directory_.SnapshotPrefix(60), 0, 2), "data without an index");
  WriteRawFile(DataPath(directory_.SnapshotPrefix(300), 1, 2) + ".tempstate12", "unfinished");
  WriteRawFile(state_path_ + ".tempstate34", "unfinished");
  WriteRawFile(JoinPath(path_, "model.ckpt-notes.txt"), "the user's");
  WriteRawFile(JoinPath(path_, "events.out.tfevents.1"), "events");
  ASSERT_TRUE(RemoveStaleFiles().ok());
  EXPECT_THAT(
      *ListDirectory(path_),
      ElementsAre("checkpoint", "events.out.tfevents.1", "model.ckpt-100.data-00000-of-00001",
                  "model.ckpt-100.index", "model.ckpt-50.data-00000-of-00001",
                  "model.ckpt-50.index", "model.ckpt-notes.txt"));
}

TEST_F(CheckpointDirectoryTest, RemoveStaleSnapshotsWithoutAStateKeepsCompleteSnapshots) {
  WriteSnapshot(100);
  WriteRawFile(DataPath(directory_.SnapshotPrefix(200), 0, 2), "data without an index");
  ASSERT_TRUE(RemoveStaleFiles().ok());
  EXPECT_THAT(StepsOnDisk(), ElementsAre(100));
  EXPECT_TRUE(FileExists(DataPath(directory_.SnapshotPrefix(200), 0, 2)));
}

TEST_F(CheckpointDirectoryTest, TemporaryFilesThatMayBeInUseStay) {
  WriteAndCommit(100);
  WriteRawFile(state_path_ + ".tempstate1", "unfinished");
  const std::vector<std::string> before = *directory_.ListTemporaries();
  EXPECT_THAT(before, ElementsAre("checkpoint.tempstate1"));
  WriteRawFile(directory_.SnapshotPrefix(200) + ".index.tempstate2", "in use");
  ASSERT_EQ(directory_.RemoveStaleFiles(before), absl::OkStatus());
  EXPECT_THAT(*directory_.ListTemporaries(), ElementsAre("model.ckpt-200.index.tempstate2"));
}

TEST_F(CheckpointDirectoryTest, RemoveStaleSnapshotsOfAMissingDirectory) {
  CheckpointDirectory missing(FileSystem::Real(), JoinPath(path_, "none"), &clock_);
  EXPECT_TRUE(missing.RemoveStaleFiles({}).ok());
  EXPECT_TRUE(missing.RemoveStaleSnapshots().ok());
}

TEST_F(CheckpointDirectoryTest, DoneMarker) {
  ASSERT_TRUE(directory_.WriteDoneMarker(9, 42).ok());
  const auto marker = directory_.ReadDoneMarker();
  ASSERT_TRUE(marker.ok() && marker->has_value());
  EXPECT_EQ((*marker)->step, 9);
  EXPECT_EQ((*marker)->config_hash, 42u);
  ASSERT_TRUE(directory_.RemoveDoneMarker().ok());
  EXPECT_EQ(*directory_.ReadDoneMarker(), std::nullopt);
}

TEST_F(CheckpointDirectoryTest, AStateFileThatIsTooLargeIsNotRead) {
  WriteAndCommit(100);
  ASSERT_EQ(truncate(state_path_.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(
      directory_.List().status(),
      absl::DataLossError(state_path_ + ": expected at most 16777216 bytes, found 1099511627776"));
}

// The real file system, in which files with this ending cannot be removed.
class StickyFileSystem : public FailingFileSystem {
 public:
  void StickTo(std::string ending) { ending_ = std::move(ending); }
  absl::Status Remove(const std::string& path) override {
    if (!ending_.empty() && absl::EndsWith(path, ending_)) {
      return absl::UnavailableError(path + ": cannot be removed");
    }
    return FailingFileSystem::Remove(path);
  }

 private:
  std::string ending_;
};

class FailedDeletionTest : public CheckpointDirectoryTest {
 protected:
  StickyFileSystem files_;
  CheckpointDirectory sticky_{&files_, path_, &clock_};
  const RetentionPolicy keep_two_ = {.keep_max = 2};

  void CommitSteps(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      WriteSnapshot(step);
      ASSERT_EQ(sticky_.Commit(step, keep_two_), absl::OkStatus());
    }
  }
};

TEST_F(FailedDeletionTest, ASnapshotWhoseIndexStaysIsDeletedWithALaterOne) {
  CommitSteps(1, 2);
  files_.StickTo("model.ckpt-1.index");
  CommitSteps(3, 4);
  EXPECT_THAT(StepsOnDisk(), ElementsAre(1, 3, 4));
  EXPECT_THAT(Steps(), ElementsAre(1, 3, 4));
  // A successor's storage works again.
  WriteAndCommit(5, keep_two_);
  EXPECT_THAT(StepsOnDisk(), ElementsAre(4, 5));
}

TEST_F(FailedDeletionTest, DataWhoseIndexIsGoneAreDeletedWithALaterOne) {
  CommitSteps(1, 2);
  const std::string data = DataPath(directory_.SnapshotPrefix(1), 0, 1);
  files_.StickTo(data);
  CommitSteps(3, 4);
  EXPECT_TRUE(FileExists(data));
  EXPECT_THAT(Steps(), ElementsAre(3, 4));  // it is no snapshot
  WriteAndCommit(5, keep_two_);
  EXPECT_FALSE(FileExists(data));
  EXPECT_EQ(directory_.ListNamed()->size(), 2u);
}

TEST_F(FailedDeletionTest, ItIsNoSnapshotToTrainFromBeforeNewerOnes) {
  CommitSteps(1, 2);
  files_.StickTo("model.ckpt-1.index");
  clock_.Advance(absl::Seconds(1));
  CommitSteps(3, 3);
  EXPECT_EQ(directory_.List()->back().step, 3);
  EXPECT_EQ(directory_.List()->front().step, 1);
}

// Storage may show it again later.
TEST_F(FailedDeletionTest, DataOfASnapshotThatIsToStayAreKeptWhereItsIndexIsOutOfSight) {
  CommitSteps(1, 2);
  const std::string index = IndexPath(directory_.SnapshotPrefix(2));
  ASSERT_EQ(FileSystem::Real()->Rename(index, JoinPath(path_, "hidden")), absl::OkStatus());
  CommitSteps(3, 3);
  EXPECT_TRUE(FileExists(DataPath(directory_.SnapshotPrefix(2), 0, 1)));
}

TEST_F(FailedDeletionTest, TheListDoesNotGrowWhereNothingCanBeDeleted) {
  files_.StickTo("index");
  CommitSteps(1, 150);
  EXPECT_EQ(directory_.ListNamed()->size(), 102u);
  EXPECT_EQ(directory_.List()->back().step, 150);
}

}  // namespace
}  // namespace keelson
