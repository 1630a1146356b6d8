#include "core/tensor_files/snapshot_name.h"

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

TEST(SnapshotNameTest, IsAPrefixItsIndexOrADirectory) {
  const std::string directory = FreshDirectory();
  WriteTestSnapshot(directory, 100);
  WriteTestSnapshot(directory, 200);
  const std::string older = directory + "/model.ckpt-100";
  EXPECT_EQ(*ResolveSnapshot(older), older);
  EXPECT_EQ(*ResolveSnapshot(older + ".index"), older);
  EXPECT_EQ(*ResolveSnapshot(directory), directory + "/model.ckpt-200");
  EXPECT_TRUE(IsDirectory(directory));
  EXPECT_FALSE(IsDirectory(older));
  const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = SnapshotsOf(directory);
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_EQ(snapshots->size(), 2u);
  EXPECT_EQ(snapshots->front().prefix, older);
}

TEST(SnapshotNameTest, WhatNamesNoSnapshotIsRefused) {
  const std::string empty = FreshDirectory();
  const std::string missing = empty + "/model.ckpt-1";
  EXPECT_EQ(SnapshotsOf(empty).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ResolveSnapshot(empty).status().message()),
              HasSubstr(empty + ": no snapshots: expected a file 'checkpoint'"));
  const absl::Status status = ResolveSnapshot(missing).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected " + missing + ".index, or a"));
}

TEST(SnapshotNameTest, SnapshotsElsewhereAreReadWhenThatIsWanted) {
  const std::string elsewhere = FreshDirectory();
  WriteTestSnapshot(elsewhere, 100);
  const std::string directory = FreshDirectory();
  const std::string snapshot = elsewhere + "/model.ckpt-100";
  ASSERT_TRUE(WriteFileAtomically(directory + "/checkpoint",
                                  "model_checkpoint_path: \"" + snapshot + "\"\n")
                  .ok());
  const absl::Status status = ResolveSnapshot(directory).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("leads elsewhere"));
  EXPECT_EQ(*ResolveSnapshot(directory, ForeignPaths::kFollowed), snapshot);
}

TEST(SnapshotNameTest, ADirectoryMayNameCheckpointsWithoutASteps) {
  const std::string directory = FreshDirectory();
  WriteSmallBundle(directory + "/cp-0001.ckpt");
  WriteRawFile(directory + "/checkpoint", "model_checkpoint_path: \"cp-0001.ckpt\"\n");
  EXPECT_EQ(*ResolveSnapshot(directory), directory + "/cp-0001.ckpt");
}

TEST(SnapshotNameTest, TheVariablesOfASavedModelAreFound) {
  const std::string directory = FreshDirectory();
  WriteRawFile(directory + "/saved_model.pb", "x");
  EXPECT_EQ(*ResolveSnapshot(directory), directory + "/variables/variables");
}

TEST(SnapshotNameTest, OtherFilesWithModelsSayWhatWouldWork) {
  const std::string directory = FreshDirectory();
  WriteRawFile(directory + "/v1.ckpt", std::string("data\x57\xfb\x80\x8b\x24\x75\x47\xdb", 12));
  WriteRawFile(directory + "/m.weights.h5", "\x89HDF\r\n\x1a\n and so on");
  WriteRawFile(directory + "/m.keras", "PK\x03\x04 and so on");
  WriteRawFile(directory + "/notes.txt", "PK\x03\x04 and so on");
  const auto message = [&](const char* name) {
    return std::string(ResolveSnapshot(directory + name).status().message());
  };
  EXPECT_THAT(message("/v1.ckpt"), HasSubstr("V1 format; tf.compat.v1.train.Saver() restores it"));
  EXPECT_THAT(message("/m.weights.h5"), HasSubstr("a file of Keras; tf.train.Checkpoint(model)"));
  EXPECT_THAT(message("/m.keras"), HasSubstr("a file of Keras"));
  EXPECT_THAT(message("/notes.txt"), HasSubstr("no snapshot: expected"));
}

}  // namespace
}  // namespace keelson
