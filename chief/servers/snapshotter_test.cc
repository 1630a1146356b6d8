#include "chief/servers/snapshotter.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/servers/fake_parameter_server.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/job_state.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ServerGroup::Options GroupOptions() {
  ServerGroup::Options options;
  options.config_hash = FakeParameterServer::kConfigHash;
  return options;
}

v1::JobState StateOfStep(int64_t step) {
  v1::JobState state;
  state.set_global_step(step);
  state.set_next_position(step * 10);
  state.set_num_records(1000);
  return state;
}

class SnapshotterTest : public testing::Test {
 protected:
  SnapshotterTest() {
    for (FakeParameterServer& fake : fakes_) fake.SetModelDir(directory_.model_dir());
  }

  void Write(int64_t step) {
    ASSERT_EQ(snapshotter_.Write([&] { return StateOfStep(step); }), absl::OkStatus());
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    const auto snapshots = directory_.List();
    EXPECT_TRUE(snapshots.ok()) << snapshots.status();
    for (const SnapshotInfo& snapshot : *snapshots) steps.push_back(snapshot.step);
    return steps;
  }
  // The index of the snapshot becomes unreadable.
  void Damage(int64_t step) {
    ASSERT_EQ(WriteFileAtomically(IndexPath(directory_.SnapshotPrefix(step)), "no index"),
              absl::OkStatus());
  }
  // Steps that a restore was tried with; `fails` says how.
  absl::StatusOr<Snapshotter::Restored> Restore(const std::map<int64_t, absl::Status>& fails = {}) {
    return NewSnapshotter()->RestoreLatest([&](const Snapshotter::Restored& candidate) {
      tried_.push_back(candidate.state.global_step());
      EXPECT_EQ(candidate.prefix, directory_.SnapshotPrefix(tried_.back()));
      EXPECT_EQ(candidate.step, tried_.back());
      const auto found = fails.find(tried_.back());
      return found == fails.end() ? absl::OkStatus() : found->second;
    });
  }
  std::unique_ptr<Snapshotter> NewSnapshotter() {
    return std::make_unique<Snapshotter>(&directory_, &servers_, RetentionPolicy{2, 0}, &clock_);
  }

  ManualClock clock_;
  StopSignal stop_;
  CheckpointDirectory directory_{FileSystem::Real(), FreshDirectory(), &clock_};
  FakeParameterServer fakes_[2];
  ServerStorage storage_;
  ServerGroup servers_{GroupOptions(),
                       {{"ps-0", "a:1", &fakes_[0]}, {"ps-1", "b:2", &fakes_[1]}},
                       &storage_,
                       &clock_,
                       &stop_};
  Snapshotter snapshotter_{&directory_, &servers_, RetentionPolicy{2, 0}, &clock_};
  std::vector<int64_t> tried_;
};

TEST_F(SnapshotterTest, WritesOneBundleOfAllParts) {
  EXPECT_EQ(snapshotter_.latest_prefix(), "");
  Write(7);
  const std::string prefix = directory_.SnapshotPrefix(7);
  EXPECT_EQ(snapshotter_.latest_prefix(), prefix);
  const auto bundle = BundleReader::Open(prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->VerifyAll(), absl::OkStatus());
  EXPECT_EQ(*(*bundle)->ReadInt64("global_step"), 7);
  EXPECT_THAT((*bundle)->ReadTensor("v0")->span(), ElementsAre(1, 2, 3));
  EXPECT_THAT((*bundle)->ReadTensor("v1")->span(), ElementsAre(1, 2, 3));
  v1::JobState state;
  ASSERT_TRUE(state.ParseFromString(*(*bundle)->ReadString(kJobStateName)));
  EXPECT_EQ(state.next_position(), 70);
}

TEST_F(SnapshotterTest, KeepsAsManyAsThePolicySays) {
  for (const int64_t step : {1, 2, 3}) Write(step);
  EXPECT_THAT(Steps(), ElementsAre(2, 3));
}

class DeltaSnapshotterTest : public SnapshotterTest {
 protected:
  DeltaSnapshotterTest() {
    for (FakeParameterServer& fake : fakes_) fake.SetTableRows({1000});
    SetChanges(10);
  }
  void SetChanges(int64_t rows) {
    for (FakeParameterServer& fake : fakes_) fake.SetChanges({{rows, 1}});
  }
  // The step that the snapshot is a delta on; -1: it is whole; -2: it fails.
  int64_t WriteNamed(int64_t step, Snapshotter* snapshotter) {
    const absl::Status status = snapshotter->Write([&] {
      v1::JobState state = StateOfStep(step);
      state.set_snapshot_id(static_cast<uint64_t>(1000 + step));
      return state;
    });
    if (!status.ok()) return -2;
    const auto request = fakes_[1].Requests(&ParameterControl::WriteSnapshot).back();
    if (!request.has_base()) return -1;
    EXPECT_EQ(request.base().snapshot_id(), static_cast<uint64_t>(1000 + request.base().step()));
    EXPECT_EQ(request.tables(0).total_erased(), 2);
    return request.base().step();
  }
  int64_t WriteNamed(int64_t step) { return WriteNamed(step, &deltas_); }
  std::vector<int64_t> WriteSteps(int64_t first, int64_t last) {
    std::vector<int64_t> bases;
    for (int64_t step = first; step <= last; ++step) bases.push_back(WriteNamed(step));
    return bases;
  }

  Snapshotter deltas_{&directory_, &servers_, RetentionPolicy{}, &clock_, {.full_every = 3}};
};

TEST_F(DeltaSnapshotterTest, OneOfSoManyIsWhole) {
  // The fakes' files have equally many bytes, so two deltas are more than half of a whole one.
  EXPECT_THAT(WriteSteps(1, 7), ElementsAre(-1, 1, -1, 3, -1, 5, -1));
  Snapshotter small(&directory_, &servers_, RetentionPolicy{}, &clock_, {.full_every = 2});
  EXPECT_EQ(WriteNamed(8, &small), -1);  // another process does not know the base
  EXPECT_EQ(WriteNamed(9, &small), 8);
  EXPECT_EQ(WriteNamed(10, &small), -1);
}

TEST_F(DeltaSnapshotterTest, AFailedSnapshotIsNoBase) {
  EXPECT_THAT(WriteSteps(1, 1), ElementsAre(-1));
  fakes_[1].FailSnapshots(1);
  EXPECT_EQ(WriteNamed(2), -2);
  // The fake knows the changes since its last cut alone, and is asked for those since step 1.
  EXPECT_EQ(WriteNamed(3), -1);
  EXPECT_EQ(WriteNamed(4), 3);
}

TEST_F(DeltaSnapshotterTest, ManyChangesAreWrittenWhole) {
  SetChanges(501);
  EXPECT_THAT(WriteSteps(1, 2), ElementsAre(-1, -1));
  SetChanges(500);
  EXPECT_EQ(WriteNamed(3), 2);
}

TEST_F(DeltaSnapshotterTest, AServerThatDoesNotKnowWritesWhole) {
  EXPECT_EQ(WriteNamed(1), -1);
  fakes_[0].Restart();
  v1::InitializeShardResponse response;
  ASSERT_EQ(fakes_[0].Initialize({}, &response), absl::OkStatus());
  EXPECT_THAT(WriteSteps(2, 3), ElementsAre(-1, 2));
}

TEST_F(DeltaSnapshotterTest, WithoutThePolicyAllAreWhole) {
  EXPECT_EQ(WriteNamed(1, &snapshotter_), -1);
  EXPECT_EQ(WriteNamed(2, &snapshotter_), -1);
  const auto request = fakes_[1].Requests(&ParameterControl::PrepareCut).back();
  EXPECT_FALSE(request.keep_changes());
  EXPECT_EQ(request.base_cut(), 0u);
}

TEST_F(SnapshotterTest, AFailureLeavesNothingBehind) {
  Write(1);
  const auto before = ListDirectory(directory_.model_dir());
  fakes_[1].FailSnapshots(1);
  EXPECT_EQ(snapshotter_.Write([&] { return StateOfStep(2); }).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*ListDirectory(directory_.model_dir()), *before);
  EXPECT_EQ(snapshotter_.latest_prefix(), directory_.SnapshotPrefix(1));
  Write(2);
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
}

TEST_F(SnapshotterTest, ASavedStepIsNotWrittenOver) {
  Write(1);
  fakes_[0].FailSnapshots(1);
  Write(1);
  EXPECT_EQ(fakes_[0].snapshots_asked(), 1);
  EXPECT_TRUE(BundleReader::Open(directory_.SnapshotPrefix(1)).ok());
}

// An interruption would leave files of both.
TEST_F(SnapshotterTest, ASnapshotThatWasOutOfSightIsNotWrittenOver) {
  Write(1);
  const std::string index = IndexPath(directory_.SnapshotPrefix(1));
  const auto before = ReadFile(index);
  const std::unique_ptr<Snapshotter> next = NewSnapshotter();
  const auto write = [&] {
    return next->Write([] {
      v1::JobState state = StateOfStep(1);
      state.set_snapshot_id(7);
      return state;
    });
  };
  EXPECT_EQ(write().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(*ReadFile(index), *before);
  ASSERT_TRUE(next->FindNewest()->has_value());
  EXPECT_EQ(write(), absl::OkStatus());
  EXPECT_EQ(*ReadFile(index), *before);
}

TEST_F(SnapshotterTest, ADamagedSnapshotIsWrittenOver) {
  Write(1);
  Damage(1);
  const std::unique_ptr<Snapshotter> next = NewSnapshotter();
  ASSERT_FALSE(next->FindNewest()->has_value());
  EXPECT_EQ(next->Write([] { return StateOfStep(1); }), absl::OkStatus());
  EXPECT_TRUE(BundleReader::Open(directory_.SnapshotPrefix(1)).ok());
}

TEST_F(SnapshotterTest, APartThatIsOutOfSightWhenItGetsItsNameIsStorageThatErrs) {
  MemoryFileSystem files;
  ASSERT_EQ(files.CreateDirectories("/model"), absl::OkStatus());
  CheckpointDirectory directory(&files, "/model", &clock_);
  FakeParameterServer fake(&files, "/model");
  ServerGroup servers(GroupOptions(), {{"ps-0", "a:1", &fake}}, &storage_, &clock_, &stop_);
  Snapshotter snapshotter(&directory, &servers, RetentionPolicy{2, 0}, &clock_);
  int hidden = 1;
  files.SetFault([&](absl::string_view operation, const std::string& path) {
    const bool part = operation == "rename" && absl::EndsWith(path, ".data-00000-of-00002");
    return part && hidden-- > 0 ? absl::NotFoundError(path + ": no such file") : absl::OkStatus();
  });
  const auto write = [&] { return snapshotter.Write([] { return StateOfStep(1); }); };
  const absl::Status status = write();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-1.data-00000"));
  EXPECT_EQ(snapshotter.figures().failures, 1);
  EXPECT_THAT(*directory.List(), IsEmpty());
  EXPECT_EQ(write(), absl::OkStatus());
  EXPECT_THAT(*directory.List(), SizeIs(1));
}

// The job has nothing but it, so one that cannot be used would keep the job from starting.
TEST_F(SnapshotterTest, AFirstSnapshotThatIsInSightAfterAPowerCutIsWhole) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kNamesKept,
                                  Unsynced::kBytesKept, Unsynced::kLastNameKept}) {
    absl::Status written = absl::UnavailableError("");
    for (int64_t operation = 0; !written.ok(); ++operation) {
      SCOPED_TRACE(absl::StrCat("outcome ", static_cast<int>(unsynced), ", cut at ", operation));
      MemoryFileSystem files;
      ASSERT_EQ(files.CreateDirectories("/model"), absl::OkStatus());
      CheckpointDirectory directory(&files, "/model", &clock_);
      FakeParameterServer fake(&files, "/model");
      ServerGroup servers(GroupOptions(), {{"ps-0", "a:1", &fake}}, &storage_, &clock_, &stop_);
      Snapshotter snapshotter(&directory, &servers, RetentionPolicy{2, 0}, &clock_);
      files.CrashAt(files.operations() + operation);
      written = snapshotter.Write([] { return StateOfStep(0); });
      files.Restart(unsynced);
      const auto restored = Snapshotter(&directory, &servers, RetentionPolicy{2, 0}, &clock_)
                                .RestoreLatest([&](const Snapshotter::Restored& candidate) {
                                  const auto bundle = BundleReader::Open(candidate.prefix, &files);
                                  return bundle.ok() ? (*bundle)->VerifyAll() : bundle.status();
                                });
      EXPECT_EQ(restored.status(), absl::OkStatus());
      EXPECT_TRUE(!written.ok() || !restored->prefix.empty());
    }
  }
}

TEST_F(SnapshotterTest, WhatIsNotConfirmedDoesNotCount) {
  Write(1);
  const absl::Status status =
      snapshotter_.Write([&] { return StateOfStep(2); },
                         [&] {
                           EXPECT_FALSE(FileExists(IndexPath(directory_.SnapshotPrefix(2))));
                           return absl::AbortedError("another chief");
                         });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Steps(), ElementsAre(1));
  EXPECT_FALSE(FileExists(IndexPath(directory_.SnapshotPrefix(2))));
}

// A chief stops before its commit, and wakes up when its successor has committed.
TEST_F(SnapshotterTest, AfterASuccessorsCommitNothingIsCommittedOrRemoved) {
  Write(1);
  const std::unique_ptr<Snapshotter> successor = NewSnapshotter();
  std::string committed;
  const absl::Status status = snapshotter_.Write(
      [&] { return StateOfStep(2); },
      [&] {
        EXPECT_EQ(successor->Write([&] { return StateOfStep(2); }), absl::OkStatus());
        EXPECT_EQ(successor->Write([&] { return StateOfStep(3); }), absl::OkStatus());
        committed = *ReadFile(JoinPath(directory_.model_dir(), "checkpoint"));
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_EQ(*ReadFile(JoinPath(directory_.model_dir(), "checkpoint")), committed);
  EXPECT_THAT(Steps(), ElementsAre(2, 3));
  for (const int64_t step : {2, 3}) {
    const auto bundle = BundleReader::Open(directory_.SnapshotPrefix(step));
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_EQ((*bundle)->VerifyAll(), absl::OkStatus());
  }
}

// The successor cleans up before it commits anything.
TEST_F(SnapshotterTest, WhatASuccessorHasRemovedIsNotCommitted) {
  Write(1);
  const absl::Status status = snapshotter_.Write([&] { return StateOfStep(2); },
                                                 [&] { return directory_.RemoveStaleSnapshots(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(Steps(), ElementsAre(1));
}

// A server that was replaced while it wrote ends its file when the snapshot is committed.
TEST_F(SnapshotterTest, AServerThatWritesLateChangesNoCommittedFile) {
  Write(2);
  const std::string part = DataPath(directory_.SnapshotPrefix(2), 0, 3);
  const std::string committed = *ReadFile(part);
  v1::WriteSnapshotRequest late;
  late.set_step(2);
  late.set_num_data_shards(3);
  late.set_cut_id(0xc0ffee);
  v1::WriteSnapshotResponse response;
  ASSERT_EQ(fakes_[0].WriteSnapshot(late, &response), absl::OkStatus());
  EXPECT_EQ(*ReadFile(part), committed);
  ASSERT_EQ(directory_.RemoveStaleSnapshots(), absl::OkStatus());
  EXPECT_THAT(*ListDirectory(directory_.model_dir()), SizeIs(5));
}

TEST_F(SnapshotterTest, AFailureRemovesOnlyWhatIsItsOwn) {
  const std::string committed = DataPath(directory_.SnapshotPrefix(2), 0, 3);
  const std::string pending = committed + ".tempstate5-c0ffee";
  for (const std::string& path : {committed, pending}) {
    ASSERT_EQ(WriteFileAtomically(path, "another chief's"), absl::OkStatus());
  }
  fakes_[1].FailSnapshots(1);
  EXPECT_FALSE(snapshotter_.Write([&] { return StateOfStep(2); }).ok());
  EXPECT_THAT(*ListDirectory(directory_.model_dir()),
              ElementsAre(BaseName(committed), BaseName(pending)));
}

TEST_F(SnapshotterTest, AModelDirectoryThatIsGoneIsCreatedAgain) {
  Write(1);
  ASSERT_EQ(RenameFile(directory_.model_dir(), directory_.model_dir() + ".moved"),
            absl::OkStatus());
  EXPECT_THAT(*snapshotter_.Snapshots(), SizeIs(1)) << "there was one, so no initial values";
  Write(2);
  EXPECT_THAT(Steps(), ElementsAre(2));
  EXPECT_TRUE(BundleReader::Open(directory_.SnapshotPrefix(2)).ok());
}

TEST_F(SnapshotterTest, FiguresSayHowItGoes) {
  EXPECT_EQ(snapshotter_.figures().step, -1);
  EXPECT_EQ(snapshotter_.figures().committed, absl::InfinitePast());
  Write(1);
  SnapshotFigures figures = snapshotter_.figures();
  EXPECT_EQ(figures.step, 1);
  EXPECT_EQ(figures.committed, clock_.Now());
  EXPECT_EQ(figures.bytes, 24);
  EXPECT_EQ(figures.longest_cut_microseconds, 7);
  EXPECT_EQ(figures.written, 1);
  fakes_[1].FailSnapshots(1);
  EXPECT_FALSE(snapshotter_.Write([&] { return StateOfStep(2); }).ok());
  figures = snapshotter_.figures();
  EXPECT_EQ(figures.step, 1);
  EXPECT_EQ(figures.failures, 1);
  EXPECT_THAT(figures.error, HasSubstr("no space left"));
  Write(2);
  EXPECT_EQ(snapshotter_.figures().error, "");
  EXPECT_EQ(snapshotter_.figures().written, 2);
}

TEST_F(SnapshotterTest, FindsTheNewestWhoseStateCanBeRead) {
  EXPECT_FALSE(snapshotter_.FindNewest()->has_value());
  Write(1);
  Write(2);
  const std::unique_ptr<Snapshotter> next = NewSnapshotter();
  auto newest = next->FindNewest();
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->state.next_position(), 20);
  EXPECT_EQ(next->figures().step, 2);
  Damage(2);
  newest = NewSnapshotter()->FindNewest();
  EXPECT_EQ((*newest)->prefix, directory_.SnapshotPrefix(1));
  Damage(1);
  EXPECT_FALSE(NewSnapshotter()->FindNewest()->has_value());
}

TEST_F(SnapshotterTest, SnapshotsAreNewestFirst) {
  EXPECT_THAT(*snapshotter_.Snapshots(), IsEmpty());
  Write(1);
  Write(2);
  const auto snapshots = snapshotter_.Snapshots();
  ASSERT_THAT(*snapshots, SizeIs(2));
  EXPECT_EQ((*snapshots)[0].step, 2);
}

TEST_F(SnapshotterTest, NothingToRestore) {
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->prefix, "");
  EXPECT_EQ(restored->state.global_step(), 0);
}

TEST_F(SnapshotterTest, RestoresTheNewest) {
  Write(1);
  Write(2);
  const std::unique_ptr<Snapshotter> next = NewSnapshotter();
  const auto restored =
      next->RestoreLatest([](const Snapshotter::Restored&) { return absl::OkStatus(); });
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state.next_position(), 20);
  EXPECT_EQ(next->latest_prefix(), directory_.SnapshotPrefix(2));
}

TEST_F(SnapshotterTest, AnUnreadableSnapshotIsPassedOver) {
  Write(1);
  Write(2);
  Damage(2);
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state.global_step(), 1);
  EXPECT_THAT(tried_, ElementsAre(1));
}

TEST_F(SnapshotterTest, ASnapshotThatAServerCannotReadIsPassedOver) {
  Write(1);
  Write(2);
  const auto restored = Restore({{2, absl::DataLossError("ps-1: bad checksum")}});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state.global_step(), 1);
  EXPECT_THAT(tried_, ElementsAre(2, 1));
}

TEST_F(SnapshotterTest, NoUsableSnapshotIsDataLoss) {
  Write(1);
  Write(2);
  Damage(2);
  const auto restored = Restore({{1, absl::NotFoundError("gone")}});
  EXPECT_EQ(restored.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(restored.status().message()), HasSubstr(directory_.model_dir()));
  EXPECT_THAT(std::string(restored.status().message()), HasSubstr("2 snapshots"));
}

TEST_F(SnapshotterTest, AServerWithAnotherDirectoryIsNamed) {
  Write(1);
  fakes_[1].SetModelDir(FreshDirectory());
  const absl::Status status = snapshotter_.Write([&] { return StateOfStep(2); });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("ps-1 wrote its part elsewhere: expected " +
                                  DataPath(directory_.SnapshotPrefix(2), 1, 3)));
  EXPECT_EQ(snapshotter_.latest_prefix(), directory_.SnapshotPrefix(1));
}

TEST_F(SnapshotterTest, PartsThatAnotherChiefHasRemovedAreNotSoughtElsewhere) {
  Write(1);
  fakes_[1].SetModelDir(FreshDirectory());
  const absl::Status status = snapshotter_.Write(
      [&] { return StateOfStep(2); }, [] { return absl::AbortedError("another chief"); });
  EXPECT_EQ(status, absl::AbortedError("another chief"));
}

TEST_F(SnapshotterTest, AFileThatIsMissingMayAppear) {
  Write(1);
  Write(2);
  ASSERT_EQ(RemoveFile(IndexPath(directory_.SnapshotPrefix(2))), absl::OkStatus());
  const auto use = [](const Snapshotter::Restored&) { return absl::OkStatus(); };
  const auto early = NewSnapshotter()->RestoreLatest(use, MissingFiles::kError);
  EXPECT_EQ(early.status().code(), absl::StatusCode::kNotFound) << early.status();
  const auto late = NewSnapshotter()->RestoreLatest(use, MissingFiles::kDamage);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->step, 1);
}

TEST_F(SnapshotterTest, SnapshotsThatNoStateFileNamesAreNoReasonToBeginAnew) {
  const auto use = [](const Snapshotter::Restored&) { return absl::OkStatus(); };
  Write(5);
  ASSERT_EQ(RemoveFile(JoinPath(directory_.model_dir(), "checkpoint")), absl::OkStatus());
  for (const bool indexed : {true, false}) {
    if (!indexed) {
      ASSERT_EQ(RemoveFile(IndexPath(directory_.SnapshotPrefix(5))), absl::OkStatus());
    }
    const auto before = ListDirectory(directory_.model_dir());
    EXPECT_EQ(NewSnapshotter()->RestoreLatest(use, MissingFiles::kError).status().code(),
              absl::StatusCode::kNotFound);
    const absl::Status refused = NewSnapshotter()->RestoreLatest(use).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("expected a file \"checkpoint\" that names a snapshot, found "
                          "model.ckpt-5.data-00000-of-00003 without it"));
    EXPECT_EQ(*ListDirectory(directory_.model_dir()), *before);
  }
}

TEST_F(SnapshotterTest, ASnapshotOfStep0BelongsToAStartThatWasInterrupted) {
  Write(0);
  ASSERT_EQ(RemoveFile(JoinPath(directory_.model_dir(), "checkpoint")), absl::OkStatus());
  auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->prefix, directory_.SnapshotPrefix(0));
  ASSERT_EQ(RemoveFile(IndexPath(directory_.SnapshotPrefix(0))), absl::OkStatus());
  restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->prefix, "");
}

TEST_F(SnapshotterTest, AnErrorThatIsNotDamageEndsTheSearch) {
  Write(1);
  Write(2);
  const auto restored = Restore({{2, absl::InvalidArgumentError("another model")}});
  EXPECT_EQ(restored.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(tried_, ElementsAre(2));
}

TEST_F(SnapshotterTest, ABundleWithoutJobStateContinuesAtItsGlobalStep) {
  const std::string prefix = directory_.SnapshotPrefix(100);
  auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, 0, 1), 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ((*writer)->AddInt64("global_step", 100), absl::OkStatus());
  ASSERT_EQ(WriteBundleIndex(FileSystem::Real(), prefix, 1, *(*writer)->Finish()),
            absl::OkStatus());
  ASSERT_EQ(directory_.Commit(100, {}), absl::OkStatus());
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state.global_step(), 100);
}

TEST_F(SnapshotterTest, AJobStateThatIsNoneIsDamage) {
  Write(1);
  const std::string prefix = directory_.SnapshotPrefix(2);
  auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, 0, 1), 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ((*writer)->AddString(kJobStateName, "\xff\xff"), absl::OkStatus());
  ASSERT_EQ(WriteBundleIndex(FileSystem::Real(), prefix, 1, *(*writer)->Finish()),
            absl::OkStatus());
  ASSERT_EQ(directory_.Commit(2, {}), absl::OkStatus());
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state.global_step(), 1);
}

}  // namespace
}  // namespace keelson
