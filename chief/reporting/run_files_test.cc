#include "chief/reporting/run_files.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using ::testing::SizeIs;
using Json = nlohmann::json;

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() : servers_(2) {
    servers_[1].task.index = 3;
    config_.mutable_checkpoint()->set_model_dir(FreshDirectory());
    config_.mutable_data()->set_data_dir("some/where");
  }
  absl::Status Write() { return WriteRunFiles(config_, placement_, servers_, FileSystem::Real()); }
  std::string File(const std::string& name) {
    return ReadFile(config_.checkpoint().model_dir() + "/" + name).value_or("");
  }

  v1::TrainConfig config_;
  Placement placement_ = Placement::Compute({{"w", Shape({6000, 2}), {}}, {"b", Shape({}), {}}}, 2);
  std::vector<ServerView> servers_;
};

TEST_F(RunFilesTest, PlacementTellsWhereTheVariablesLive) {
  ASSERT_EQ(Write(), absl::OkStatus());
  const Json json = Json::parse(File("placement.json"));
  ASSERT_THAT(json["shards"], SizeIs(2));
  EXPECT_EQ(json["shards"][0], Json({{"task", "ps-0"}, {"bytes", placement_.ShardBytes(0)}}));
  EXPECT_EQ(json["shards"][1]["task"], "ps-3");
  const double mean = (6000 * 2 + 1) * 4 / 2.0;
  const auto largest = std::max(placement_.ShardBytes(0), placement_.ShardBytes(1));
  EXPECT_DOUBLE_EQ(json["balance"], static_cast<double>(largest) / mean);
  ASSERT_THAT(json["variables"], SizeIs(2));
  EXPECT_EQ(json["variables"][0]["name"], "b");
  EXPECT_EQ(json["variables"][0]["shape"], Json::array());
  EXPECT_EQ(json["variables"][0]["bytes"], 4);
  EXPECT_EQ(json["variables"][1]["shape"], Json({6000, 2}));
  int64_t rows = 0;
  for (const Json& partition : json["variables"][1]["partitions"]) {
    EXPECT_EQ(partition["row_begin"], rows);
    rows = partition["row_end"];
    EXPECT_EQ(partition["bytes"], (rows - partition["row_begin"].get<int64_t>()) * 8);
  }
  EXPECT_EQ(rows, 6000);
}

TEST_F(RunFilesTest, ServersAndWorkersAreEachBalancedByThemselves) {
  servers_[1].host = Task{Role::kWorker, 0};
  const Json json = Json::parse(PlacementJson(placement_, servers_));
  EXPECT_EQ(json["balance"], 1.0);
  EXPECT_FALSE(json["shards"][0].contains("host"));
  EXPECT_EQ(json["shards"][1]["host"], "worker-0");
}

TEST_F(RunFilesTest, TheConfigurationCanBeReadBack) {
  ASSERT_EQ(Write(), absl::OkStatus());
  const auto read = ParseTrainConfig(File("train_config.textproto"), "train_config.textproto");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), config_.SerializeAsString());
}

TEST_F(RunFilesTest, ADirectoryThatIsGoneIsAnError) {
  config_.mutable_checkpoint()->set_model_dir("/nonexistent/model");
  EXPECT_FALSE(Write().ok());
}

}  // namespace
}  // namespace keelson
