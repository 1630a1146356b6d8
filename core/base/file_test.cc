#include "core/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FreshDirectory() {
  std::string path = testing::TempDir() + "/keelson_file_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

TEST(FileTest, AtomicWriteReplacesAndLeavesNothingBeside) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "state");
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(*ReadFile(path), "two");
  EXPECT_THAT(*ListDirectory(directory), ElementsAre("state"));
}

TEST(FileTest, AtomicWriteIntoMissingDirectoryNamesThePath) {
  const absl::Status status = WriteFileAtomically("/nonexistent/dir/state", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/dir/state"));
}

TEST(FileTest, ReadPastTheEndIsDataLoss) {
  const std::string path = JoinPath(FreshDirectory(), "short");
  ASSERT_TRUE(WriteFileAtomically(path, "abc").ok());
  auto file = FileSystem::Real()->OpenForRead(path);
  ASSERT_TRUE(file.ok());
  char buffer[4];
  EXPECT_TRUE((*file)->Read(1, 2, buffer).ok());
  const absl::Status status = (*file)->Read(1, 4, buffer);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(FileTest, ReadingADirectoryFails) { EXPECT_FALSE(ReadFile(FreshDirectory()).ok()); }

TEST(FileTest, AppendContinuesOrTruncates) {
  const std::string path = JoinPath(FreshDirectory(), "log");
  for (const bool truncate : {true, false}) {
    auto file = FileSystem::Real()->OpenForAppend(path, truncate);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("x").ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(*ReadFile(path), "xx");
  ASSERT_TRUE(FileSystem::Real()->OpenForAppend(path, true).ok());
  EXPECT_EQ(*ReadFile(path), "");
}

TEST(FileTest, RemoveOfAMissingFileIsFine) {
  EXPECT_TRUE(RemoveFile(JoinPath(FreshDirectory(), "none")).ok());
}

TEST(FileTest, CreateDirectoriesMakesParents) {
  const std::string path = JoinPath(FreshDirectory(), "a/b/c");
  ASSERT_TRUE(CreateDirectories(path).ok());
  EXPECT_TRUE(CreateDirectories(path).ok());
  EXPECT_TRUE(SyncDirectory(path).ok());
}

TEST(PathTest, Parts) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(DirectoryOf("a/b/c"), "a/b");
  EXPECT_EQ(DirectoryOf("c"), ".");
  EXPECT_EQ(DirectoryOf("/c"), "/");
  EXPECT_EQ(BaseName("a/b/c"), "c");
  EXPECT_EQ(BaseName("c"), "c");
}

}  // namespace
}  // namespace keelson
