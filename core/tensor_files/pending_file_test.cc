#include "core/tensor_files/pending_file.h"

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class PendingFileTest : public testing::Test {
 protected:
  const std::string directory_ = FreshDirectory();
  const std::string path_ = directory_ + "/out";
};

TEST_F(PendingFileTest, ReplacesTheFileWhenCommitted) {
  WriteRawFile(path_, "old");
  {
    PendingFile file(path_);
    EXPECT_TRUE(absl::StartsWith(file.temporary_path(), path_ + ".tempstate"));
    WriteRawFile(file.temporary_path(), "new");
    EXPECT_EQ(ReadRawFile(path_), "old");
    ASSERT_TRUE(file.Commit().ok());
  }
  EXPECT_EQ(ReadRawFile(path_), "new");
  EXPECT_EQ(ListDirectory(directory_)->size(), 1u);
}

TEST_F(PendingFileTest, LeavesNothingWhenGivenUp) {
  {
    PendingFile file(path_);
    WriteRawFile(file.temporary_path(), "new");
  }
  EXPECT_TRUE(ListDirectory(directory_)->empty());
}

TEST_F(PendingFileTest, WhatCannotBeRenamedIsRemoved) {
  ASSERT_TRUE(CreateDirectories(path_ + "/occupied").ok());
  {
    PendingFile file(path_);
    WriteRawFile(file.temporary_path(), "new");
    EXPECT_FALSE(file.Commit().ok());
  }
  EXPECT_EQ(ListDirectory(directory_)->size(), 1u);
}

}  // namespace
}  // namespace keelson
