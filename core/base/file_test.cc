#include "core/base/file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(FileTest, WhatIsNoRegularFileIsRefusedWithoutWaitingForIt) {
  const std::string directory = FreshDirectory();
  const std::string pipe = JoinPath(directory, "pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string socket_path = JoinPath(directory, "socket");
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  std::copy(socket_path.begin(), socket_path.end(), address.sun_path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const std::string& path : {directory, pipe, socket_path, std::string("/dev/null")}) {
    EXPECT_EQ(ReadFile(path).status(),
              absl::FailedPreconditionError(path + ": not a regular file"));
  }
  close(listener);
}

TEST(FileTest, WhatStandardInputAndProcAreOfCanBeRead) {
  const std::string path = JoinPath(FreshDirectory(), "text");
  ASSERT_TRUE(WriteFileAtomically(path, "abc").ok());
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(*ReadFile("/dev/fd/" + std::to_string(fd)), "abc");
  close(fd);
  EXPECT_TRUE(ReadFile("/proc/self/stat").ok());
}

TEST(FileTest, AFileAboveTheBoundIsNotRead) {
  const std::string path = JoinPath(FreshDirectory(), "sparse");
  ASSERT_TRUE(WriteFileAtomically(path, "abc").ok());
  EXPECT_EQ(*ReadBoundedFile(path, 3), "abc");
  EXPECT_EQ(ReadBoundedFile(path, 2).status(),
            absl::DataLossError(path + ": expected at most 2 bytes, found 3"));
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadBoundedFile(path, 65536).status(),
            absl::DataLossError(path + ": expected at most 65536 bytes, found 1099511627776"));
  EXPECT_TRUE(absl::IsNotFound(ReadBoundedFile(path + "-none", 3).status()));
}

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
