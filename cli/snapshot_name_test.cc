#include "cli/snapshot_name.h"

#include "cli/snapshot_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
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

}  // namespace
}  // namespace keelson
