#include "core/checkpoint/done_marker.h"

#include "core/checkpoint/bundle_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace keelson
