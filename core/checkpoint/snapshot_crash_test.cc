// Whatever instruction a crash or a full disk hits while a snapshot is written: the snapshots
// before it stay readable, and the next one can be written.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr int kParts = 2;
constexpr RetentionPolicy kKeepTwo = {.keep_max = 2};

// Looks for files succeed, but one of them is not found when it is opened.
class VanishingFileSystem : public MemoryFileSystem {
 public:
  void SetVanished(const std::string& path) { vanished_ = path; }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    if (path == vanished_) return absl::NotFoundError(path);
    return MemoryFileSystem::OpenForRead(path);
  }

 private:
  std::string vanished_;
};

class SnapshotCrashTest : public testing::Test {
 protected:
  SnapshotCrashTest() { EXPECT_TRUE(files_.CreateDirectories("/job").ok()); }

  // Every part has the step as its values.
  absl::Status WritePart(int64_t step, int part, std::vector<BundleIndexEntry>* entries) {
    const std::string prefix = directory_.SnapshotPrefix(step);
    ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer,
                     BundleDataWriter::Create(&files_, DataPath(prefix, part, kParts), part));
    const std::vector<float> values(10, static_cast<float>(step));
    RETURN_IF_ERROR(writer->AddTensor(absl::StrCat("w", part), Shape({10}), values));
    RETURN_IF_ERROR(writer->AddString(absl::StrCat("s", part), "state"));
    ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> written, writer->Finish());
    entries->insert(entries->end(), written.begin(), written.end());
    return absl::OkStatus();
  }

  absl::Status WriteSnapshot(int64_t step) {
    std::vector<BundleIndexEntry> entries;
    for (int part = 0; part < kParts; ++part) {
      RETURN_IF_ERROR(WritePart(step, part, &entries));
    }
    RETURN_IF_ERROR(WriteBundleIndex(&files_, directory_.SnapshotPrefix(step), kParts, entries));
    return directory_.Commit(step, kKeepTwo);
  }

  void WriteFirstTwo() {
    ASSERT_EQ(WriteSnapshot(1), absl::OkStatus());
    ASSERT_EQ(WriteSnapshot(2), absl::OkStatus());
  }

  absl::Status RemoveStaleFiles() {
    ASSIGN_OR_RETURN(const std::vector<std::string> temporaries, directory_.ListTemporaries());
    RETURN_IF_ERROR(directory_.RemoveStaleSnapshots());
    return directory_.RemoveStaleFiles(temporaries);
  }

  void ExpectReadable(const SnapshotInfo& snapshot) {
    const auto bundle = BundleReader::Open(snapshot.prefix, &files_);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_EQ((*bundle)->VerifyAll(), absl::OkStatus());
    for (int part = 0; part < kParts; ++part) {
      const auto values = (*bundle)->ReadTensor(absl::StrCat("w", part));
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(values->span()[9], static_cast<float>(snapshot.step));
    }
  }

  // Returns the latest step, 0 when there is something wrong.
  int64_t ExpectAllReadable() {
    const auto snapshots = directory_.List();
    EXPECT_TRUE(snapshots.ok()) << snapshots.status();
    if (!snapshots.ok() || snapshots->empty()) return 0;
    for (const SnapshotInfo& snapshot : *snapshots) ExpectReadable(snapshot);
    return snapshots->back().step;
  }

  // Only whole snapshots. One that is whole though it has left the list may stay: it may have been
  // preserved.
  void ExpectNothingStale() {
    std::vector<std::string> expected = {"checkpoint"};
    for (int64_t step = 1; step <= 4; ++step) {
      const std::string prefix = directory_.SnapshotPrefix(step);
      if (!*files_.Exists(IndexPath(prefix))) continue;
      ExpectReadable({step, prefix, {}});
      const std::string name = BaseName(prefix);
      for (int part = 0; part < kParts; ++part) expected.push_back(DataPath(name, part, kParts));
      expected.push_back(IndexPath(name));
    }
    EXPECT_THAT(*files_.List("/job"), testing::UnorderedElementsAreArray(expected));
  }

  // What a chief does that starts now.
  void ExpectGoesOn() {
    ASSERT_EQ(RemoveStaleFiles(), absl::OkStatus());
    ExpectNothingStale();
    ASSERT_EQ(WriteSnapshot(4), absl::OkStatus());
    EXPECT_EQ(ExpectAllReadable(), 4);
    ExpectNothingStale();
  }

  VanishingFileSystem files_;
  ManualClock clock_;
  CheckpointDirectory directory_{&files_, "/job", &clock_};
};

class CrashEverywhereTest : public SnapshotCrashTest, public testing::WithParamInterface<Unsynced> {
 protected:
  // Returns whether the crash came before the snapshot was complete.
  bool CrashAt(int64_t operation) {
    MemoryFileSystem* files = &files_;
    files->CrashAt(files->operations() + operation);
    const absl::Status status = WriteSnapshot(3);
    const bool crashed = files->crashed();
    files->Restart(GetParam());
    const int64_t latest = ExpectAllReadable();
    EXPECT_TRUE(latest == 3 || (latest == 2 && !status.ok())) << latest << " " << status;
    ExpectGoesOn();
    return crashed;
  }
};

// One test for each operation, so that each starts afresh.
TEST_P(CrashEverywhereTest, LeavesThePreviousSnapshot) {
  int64_t operation = 0;
  for (bool crashed = true; crashed; ++operation) {
    SCOPED_TRACE(absl::StrCat("crash at operation ", operation));
    files_.RemoveTree("/job");
    ASSERT_TRUE(files_.CreateDirectories("/job").ok());
    WriteFirstTwo();
    crashed = CrashAt(operation);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(operation, 20);
}

INSTANTIATE_TEST_SUITE_P(Unsynced, CrashEverywhereTest,
                         testing::Values(Unsynced::kLost, Unsynced::kKept, Unsynced::kNamesKept,
                                         Unsynced::kBytesKept, Unsynced::kLastNameKept));

TEST_F(SnapshotCrashTest, ACrashWhileTheFirstSnapshotIsWrittenLeavesNone) {
  for (int64_t operation = 0; operation < 10; ++operation) {
    files_.CrashAt(files_.operations() + operation);
    EXPECT_EQ(WriteSnapshot(0).code(), absl::StatusCode::kUnavailable);
    files_.Restart(Unsynced::kKept);
    EXPECT_TRUE(directory_.List()->empty());
    ASSERT_EQ(RemoveStaleFiles(), absl::OkStatus());
    EXPECT_THAT(*files_.List("/job"), testing::IsEmpty());
  }
}

TEST_F(SnapshotCrashTest, AFullDiskAtEveryByteLeavesThePreviousSnapshot) {
  WriteFirstTwo();
  const int64_t used = files_.used_bytes();
  absl::Status status = absl::ResourceExhaustedError("");
  int64_t left = 0;
  for (; !status.ok(); ++left) {
    files_.SetCapacity(used + left);
    status = WriteSnapshot(3);
    if (status.ok()) break;
    ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ASSERT_TRUE(absl::StrContains(status.message(), "/job/")) << status;
    const std::vector<std::string> names = *files_.List("/job");
    for (const std::string& name : names) {
      ASSERT_FALSE(absl::StrContains(name, ".tempstate")) << name;
    }
    ASSERT_EQ(ExpectAllReadable(), 2);
    ASSERT_EQ(RemoveStaleFiles(), absl::OkStatus());
    ASSERT_EQ(files_.used_bytes(), used);
  }
  EXPECT_GT(left, 300);
  EXPECT_EQ(ExpectAllReadable(), 3);
}

TEST_F(SnapshotCrashTest, AVanishedDirectoryIsAnErrorUntilItIsMadeAgain) {
  WriteFirstTwo();
  files_.RemoveTree("/job");
  EXPECT_EQ(WriteSnapshot(3).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(directory_.List()->empty());
  ASSERT_TRUE(files_.CreateDirectories("/job").ok());
  ASSERT_EQ(WriteSnapshot(3), absl::OkStatus());
  EXPECT_EQ(ExpectAllReadable(), 3);
}

TEST_F(SnapshotCrashTest, AReadOnlyDirectoryIsAnErrorThatNamesTheFile) {
  WriteFirstTwo();
  files_.SetFault([](absl::string_view operation, const std::string& path) {
    if (operation == "look") return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("cannot ", operation, " ", path));
  });
  const absl::Status status = WriteSnapshot(3);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/job/model.ckpt-3.data-00000"));
  EXPECT_EQ(ExpectAllReadable(), 2);
}

TEST_F(SnapshotCrashTest, AFileThatTheDirectoryNamesIsNotAbsent) {
  WriteFirstTwo();
  for (const std::string hidden : {"/job/checkpoint", "/job/model.ckpt-2.index"}) {
    files_.SetFault([&](absl::string_view operation, const std::string& path) {
      return operation == "look" && path == hidden ? absl::NotFoundError(path) : absl::OkStatus();
    });
    EXPECT_EQ(directory_.List().status(),
              absl::UnavailableError(hidden + ": its directory names it, but it cannot be opened"));
    EXPECT_EQ(WriteSnapshot(3).code(), absl::StatusCode::kUnavailable);
    files_.SetFault(nullptr);
    EXPECT_EQ(ExpectAllReadable(), 2);
  }
}

TEST_F(SnapshotCrashTest, AStateFileThatVanishesBetweenLookAndReadIsNotAbsent) {
  WriteFirstTwo();
  files_.SetVanished("/job/checkpoint");
  EXPECT_EQ(directory_.List().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(WriteSnapshot(3).code(), absl::StatusCode::kUnavailable);
  files_.SetVanished("");
  EXPECT_EQ(ExpectAllReadable(), 2);
}

TEST_F(SnapshotCrashTest, AMarkerThatItsDirectoryNamesIsNotAbsent) {
  ASSERT_EQ(directory_.WriteDoneMarker(2, 7), absl::OkStatus());
  files_.SetVanished("/job/DONE");
  EXPECT_EQ(directory_.ReadDoneMarker().status().code(), absl::StatusCode::kUnavailable);
  files_.SetVanished("");
  EXPECT_TRUE((*directory_.ReadDoneMarker()).has_value());
}

TEST_F(SnapshotCrashTest, ADirectoryThatCannotBeLookedAtIsNotEmpty) {
  WriteFirstTwo();
  files_.SetFault([](absl::string_view operation, const std::string& path) {
    if (operation != "look") return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot look for ", path));
  });
  EXPECT_EQ(directory_.List().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(directory_.ReadDoneMarker().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RemoveStaleFiles().code(), absl::StatusCode::kUnavailable);
  files_.SetFault(nullptr);
  EXPECT_EQ(ExpectAllReadable(), 2);
}

}  // namespace
}  // namespace keelson
