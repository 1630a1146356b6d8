#include "core/base/file_operation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "core/base/confined_file_system.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(FileOperationTest, ThoseUnderWayAreNamedInTheirOrder) {
  const FileOperation first("fsync", "/model/a");
  { const FileOperation ended("rename", "/model/b"); }
  const FileOperation last("open", "/model/c");
  EXPECT_THAT(
      FileOperation::UnderWay(absl::ZeroDuration()),
      ElementsAre(StartsWith("fsync of /model/a for "), StartsWith("open of /model/c for ")));
  EXPECT_THAT(FileOperation::UnderWay(absl::Hours(1)), IsEmpty());
}

// Opening a pipe for writing hangs until a reader opens it.
void ExpectNamedWhileItHangs(FileSystem* files, const std::string& directory) {
  const std::string path = JoinPath(directory, "pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    const auto file = files->OpenForAppend(path, /*truncate=*/false);
    EXPECT_TRUE(file.ok()) << file.status();
  });
  while (FileOperation::UnderWay(absl::ZeroDuration()).empty()) std::this_thread::yield();
  EXPECT_THAT(FileOperation::UnderWay(absl::ZeroDuration()),
              ElementsAre(StartsWith("open of " + path + " for ")));
  const int reader = open(path.c_str(), O_RDONLY);
  writer.join();
  close(reader);
  EXPECT_THAT(FileOperation::UnderWay(absl::ZeroDuration()), IsEmpty());
}

TEST(FileOperationTest, TheRealFileSystemNamesWhatHangs) {
  ExpectNamedWhileItHangs(FileSystem::Real(), FreshDirectory());
}

TEST(FileOperationTest, AConfinedFileSystemNamesWhatHangs) {
  const std::string directory = FreshDirectory();
  ConfinedFileSystem files(directory);
  ExpectNamedWhileItHangs(&files, directory);
}

}  // namespace
}  // namespace keelson
