#include "core/base/confined_file_system.h"

#include <unistd.h>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Walk = ConfinedFileSystem::Walk;

// A directory with links out of it, beside one with a file that no test may touch.
class ConfinedFileSystemTest : public testing::TestWithParam<Walk> {
 protected:
  ConfinedFileSystemTest() {
    EXPECT_EQ(WriteFileAtomically(outside_ + "/secret", "untouched"), absl::OkStatus());
    EXPECT_EQ(symlink((outside_ + "/secret").c_str(), Path("file_link").c_str()), 0);
    EXPECT_EQ(symlink((outside_ + "/new").c_str(), Path("dangling_link").c_str()), 0);
    EXPECT_EQ(symlink(outside_.c_str(), Path("directory_link").c_str()), 0);
  }
  ~ConfinedFileSystemTest() override {
    EXPECT_THAT(*ListDirectory(outside_), ElementsAre("secret"));
    EXPECT_EQ(*ReadFile(outside_ + "/secret"), "untouched");
  }

  std::string Path(const std::string& name) { return JoinPath(root_, name); }

  const std::string outside_ = FreshDirectory();
  const std::string root_ = FreshDirectory();
  ConfinedFileSystem files_{root_, GetParam()};
};

TEST_P(ConfinedFileSystemTest, WhatLeadsOutIsRefusedAndNothingIsMade) {
  for (const std::string& path :
       {outside_ + "/secret", root_ + "/../" + BaseName(outside_) + "/secret",
        Path("x/../../" + BaseName(outside_) + "/secret"), root_ + "x/secret", Path("file_link"),
        Path("directory_link/secret"), Path("directory_link/../secret"), std::string("secret"),
        std::string("")}) {
    SCOPED_TRACE(path);
    for (const absl::Status& status :
         {files_.OpenForRead(path).status(), files_.OpenForAppend(path, true).status(),
          files_.OpenForAppend(path, false).status(), files_.ModificationTime(path).status(),
          files_.Exists(path).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    }
    EXPECT_FALSE(files_.CreateExclusive(path).ok());
  }
}

TEST_P(ConfinedFileSystemTest, NewFilesAreNotMadeThroughLinks) {
  for (const char* name : {"dangling_link", "directory_link/new"}) {
    EXPECT_EQ(files_.OpenForAppend(Path(name), true).status().code(),
              absl::StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(files_.CreateExclusive(Path("dangling_link")).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_P(ConfinedFileSystemTest, DirectoriesBehindLinksAreOutOfReach) {
  const std::string behind = Path("directory_link");
  for (const absl::Status& status :
       {files_.List(behind).status(), files_.SyncDirectory(behind),
        files_.CreateDirectories(behind + "/made"), files_.Remove(behind + "/secret"),
        files_.Rename(behind + "/secret", Path("taken")),
        files_.Rename(Path("file_link"), behind + "/secret"),
        files_.Remove(root_ + "/../" + BaseName(outside_) + "/secret")}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  }
}

TEST_P(ConfinedFileSystemTest, ALinkIsRemovedAndReplacedItself) {
  EXPECT_EQ(files_.Remove(Path("file_link")), absl::OkStatus());
  ASSERT_TRUE(files_.CreateExclusive(Path("new")).ok());
  EXPECT_EQ(files_.Rename(Path("new"), Path("dangling_link")), absl::OkStatus());
  EXPECT_EQ(*files_.Resolve(Path("dangling_link")), *files_.Resolve(root_) + "/dangling_link");
}

TEST_P(ConfinedFileSystemTest, TheDirectoryMayBeALinkAndMayBeMadeAgain) {
  const std::string link = FreshDirectory() + "/link";
  const std::string target = FreshDirectory();
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  ConfinedFileSystem files(link + "/", GetParam());
  ASSERT_TRUE(files.CreateExclusive(link + "/a").ok());
  EXPECT_THAT(*files.List(link), ElementsAre("a"));
  ASSERT_EQ(files.Remove(link + "/a"), absl::OkStatus());
  ASSERT_EQ(rmdir(target.c_str()), 0);
  EXPECT_EQ(files.List(link).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(CreateDirectories(target), absl::OkStatus());
  EXPECT_THAT(*files.List(link), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Walks, ConfinedFileSystemTest,
                         testing::Values(Walk::kAuto, Walk::kByComponent));

}  // namespace
}  // namespace keelson
