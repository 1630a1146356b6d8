#include "core/config/shard_layout.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kTablesOnServers[] =
    "placement { groups { variables: '*table*' on: PS } groups { variables: '*' on: WORKERS } }";

v1::TrainConfig PlacedConfig(const std::string& text) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

ClusterSpec LaidOutCluster(bool chief, int servers, int workers) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 0};
  if (chief) cluster.chief[0] = "chief:1";
  for (int i = 0; i < servers; ++i) cluster.ps[i] = absl::StrCat("ps:", i + 1);
  for (int i = 0; i < workers; ++i) cluster.workers[i] = absl::StrCat("worker:", i + 1);
  return cluster;
}

Task WorkerAt(int index) { return {Role::kWorker, index}; }

TEST(ShardLayoutTest, WithServersTheyHoldAllUnlessTheConfigSaysOtherwise) {
  for (const char* text : {"", "placement { groups { variables: '*' on: PS } }"}) {
    const ShardLayout layout(PlacedConfig(text), LaidOutCluster(true, 2, 3));
    EXPECT_EQ(layout.servers(), 2u);
    EXPECT_EQ(layout.num_shards(), 2u);
    EXPECT_THAT(layout.hosts(), IsEmpty());
    EXPECT_EQ(layout.HomeAt(WorkerAt(0)), std::nullopt);
  }
}

TEST(ShardLayoutTest, WorkersHoldTheShardsBehindThoseOfServers) {
  const ShardLayout layout(PlacedConfig(kTablesOnServers), LaidOutCluster(true, 2, 3));
  EXPECT_EQ(layout.servers(), 2u);
  EXPECT_EQ(layout.num_shards(), 5u);
  EXPECT_THAT(layout.hosts(), ElementsAre(WorkerAt(0), WorkerAt(1), WorkerAt(2)));
  EXPECT_EQ(layout.HomeAt(WorkerAt(2)), 4u);
  EXPECT_EQ(layout.HomeAt({Role::kChief, 0}), std::nullopt);
  EXPECT_EQ(layout.HomeAt({Role::kPs, 0}), std::nullopt);
}

TEST(ShardLayoutTest, TheRingIsOfTheTasksThatTrain) {
  const ShardLayout layout(PlacedConfig(kTablesOnServers), LaidOutCluster(true, 2, 3));
  EXPECT_EQ(layout.ShardAfter(2), 3u);
  EXPECT_EQ(layout.ShardAfter(4), 2u);
  EXPECT_THAT(layout.RingFrom(3), ElementsAre(3u, 4u, 2u));
}

TEST(ShardLayoutTest, WithoutServersAllThatTrainHoldShards) {
  for (const char* text : {"", "placement { groups { variables: '*' on: WORKERS } }"}) {
    const ShardLayout layout(PlacedConfig(text), LaidOutCluster(true, 0, 2));
    EXPECT_EQ(layout.servers(), 0u);
    EXPECT_THAT(layout.hosts(), ElementsAre(Task{Role::kChief, 0}, WorkerAt(0), WorkerAt(1)));
    EXPECT_EQ(layout.HomeAt(WorkerAt(1)), 2u);
    EXPECT_EQ(layout.ShardAfter(2), 0u);
  }
}

TEST(ShardLayoutTest, AProcessAloneHasNoTasksThatHoldShards) {
  EXPECT_EQ(ShardLayout(PlacedConfig(kTablesOnServers), ClusterSpec()).num_shards(), 0u);
}

TEST(ShardLayoutTest, ReplicasDependOnHowManyWorkersHoldShards) {
  v1::TrainConfig config = PlacedConfig(kTablesOnServers);
  EXPECT_FALSE(WantsReplicas(config, LaidOutCluster(true, 1, 2)));
  EXPECT_TRUE(WantsReplicas(config, LaidOutCluster(true, 1, 3)));
  config.mutable_collective()->set_replicas(v1::CollectiveConfig::ALWAYS);
  EXPECT_TRUE(WantsReplicas(config, LaidOutCluster(true, 1, 2)));
  EXPECT_FALSE(WantsReplicas(config, LaidOutCluster(true, 1, 1)));
}

TEST(ShardLayoutTest, TheModeStaysAsynchronousWithServers) {
  EXPECT_TRUE(WithModeOf(PlacedConfig(kTablesOnServers), LaidOutCluster(true, 1, 2))
                  .consistency()
                  .mode()
                  .has_async());
}

TEST(GroupPlaceOfTest, TheFirstGroupThatMatchesDecides) {
  const v1::PlacementConfig placement = PlacedConfig(kTablesOnServers).placement();
  EXPECT_EQ(GroupPlaceOf(placement, "user_table"), PlacementGroup::PS);
  EXPECT_EQ(GroupPlaceOf(placement, "dense/kernel"), PlacementGroup::WORKERS);
  EXPECT_EQ(GroupPlaceOf({}, "dense/kernel"), PlacementGroup::PLACE_UNSPECIFIED);
}

}  // namespace
}  // namespace keelson
