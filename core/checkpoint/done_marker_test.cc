#include "core/checkpoint/done_marker.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(DoneMarkerTest, ComesBackAndGoes) {
  const std::string directory = FreshDirectory();
  EXPECT_EQ(*ReadDoneMarker(directory), std::nullopt);
  ASSERT_TRUE(WriteDoneMarker(FileSystem::Real(), directory, {1200, 0xf000000000000001}).ok());
  EXPECT_EQ(ReadRawFile(JoinPath(directory, "DONE")),
            "{\"config_hash\":\"f000000000000001\",\"step\":1200}\n");
  const auto marker = ReadDoneMarker(directory);
  ASSERT_TRUE(marker.ok() && marker->has_value());
  EXPECT_EQ((*marker)->step, 1200);
  EXPECT_EQ((*marker)->config_hash, 0xf000000000000001);
  EXPECT_TRUE(RemoveDoneMarker(FileSystem::Real(), directory).ok());
  EXPECT_TRUE(RemoveDoneMarker(FileSystem::Real(), directory).ok());
  EXPECT_EQ(*ReadDoneMarker(directory), std::nullopt);
}

TEST(DoneMarkerTest, GarbageIsDataLoss) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "DONE");
  for (const char* text :
       {"", "done", "[1]", "{\"step\":1}", "{\"config_hash\":\"1\"}",
        "{\"step\":\"1\",\"config_hash\":\"1\"}", "{\"step\":1,\"config_hash\":1}",
        "{\"step\":1,\"config_hash\":\"x\"}", "{\"step\":1,\"config_hash\":\"1\""}) {
    WriteRawFile(path, text);
    const absl::Status status = ReadDoneMarker(directory).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(DoneMarkerTest, WhatCannotBeAMarkerIsNotRead) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "DONE");
  WriteRawFile(path, "");
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadDoneMarker(directory).status(),
            absl::DataLossError(path + ": expected at most 65536 bytes, found 1099511627776"));
  ASSERT_TRUE(RemoveFile(path).ok());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ReadDoneMarker(directory).status(),
            absl::FailedPreconditionError(path + ": not a regular file"));
}

}  // namespace
}  // namespace keelson
