// Jobs with parameter servers that have variables on workers: what they come to.
#include <google/protobuf/text_format.h>

#include <string>

#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"
#include "tests/support/equal_jobs.h"
#include "tests/support/hybrid_config.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_difference.h"

namespace keelson {
namespace {

constexpr int kWorkers = 2;

// A job with a table, in a directory of its own.
v1::TrainConfig WithTable(const std::string& placement) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      HybridConfig(/*max_steps=*/24, placement), &config));
  config.mutable_checkpoint()->set_model_dir(FreshDirectory());
  EXPECT_EQ(FinalizeTrainConfig(&config), absl::OkStatus());
  return config;
}

// The job's configuration with another placement, when it ends at another step.
v1::TrainConfig Placed(v1::TrainConfig config, const std::string& placement, int64_t steps) {
  config.clear_placement();
  v1::TrainConfig groups;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(placement, &groups));
  *config.mutable_placement() = groups.placement();
  config.mutable_train()->set_max_steps(steps);
  EXPECT_EQ(FinalizeTrainConfig(&config), absl::OkStatus());
  return config;
}

TEST(HybridTest, ASynchronousJobWithATableIsTheOneOnServersAlone) {
  const v1::TrainConfig served = WithTable("");
  RunToTheEnd({.servers = 2, .workers = kWorkers, .config = served});
  const v1::TrainConfig hybrid = WithTable(kHybridPlacement);
  RunToTheEnd(LocalCluster::Options::Hybrid(2, kWorkers, hybrid));
  EXPECT_LT(DifferenceOf(hybrid, served).relative, 1e-5);
}

// The servers hold the job's state, and nothing of the model.
TEST(HybridTest, AllVariablesMayBeOnWorkersAlthoughThereAreServers) {
  const v1::TrainConfig served = SynchronousConfig(8, kWorkers, kWorkers, 12);
  RunToTheEnd({.servers = 1, .workers = kWorkers, .config = served});
  v1::TrainConfig alone = SynchronousConfig(8, kWorkers, kWorkers, 12);
  alone = Placed(alone, R"(placement { groups { variables: "*" on: WORKERS } })", 12);
  LocalCluster cluster(LocalCluster::Options::Hybrid(1, kWorkers, alone));
  StartTogether(kWorkers, &cluster);
  cluster.ExpectDone();
  EXPECT_EQ(cluster.ShardStatus(0).value_bytes(), 0);
  EXPECT_GT(cluster.ShardStatus(1).value_bytes(), 0);
  EXPECT_GT(cluster.ShardStatus(2).value_bytes(), 0);
  EXPECT_LT(DifferenceOf(alone, served).relative, 1e-5);
}

// One after another in the same model directory; what changes is no other configuration.
TEST(HybridTest, ASnapshotRestoresWhereverVariablesAndRowsArePlaced) {
  const v1::TrainConfig served = WithTable("");
  RunToTheEnd({.servers = 2, .workers = kWorkers, .config = served});
  const v1::TrainConfig moving = WithTable("");
  RunToTheEnd(LocalCluster::Options::Hybrid(2, kWorkers, Placed(moving, kHybridPlacement, 6)));
  RunToTheEnd({.servers = 3, .workers = kWorkers, .config = Placed(moving, "", 12)});
  RunToTheEnd(LocalCluster::Options::Hybrid(1, kWorkers, Placed(moving, kHybridPlacement, 18)));
  const std::string kernels =
      R"(placement { groups { variables: "*/kernel" on: WORKERS } groups { variables: "*" on: PS } })";
  const v1::TrainConfig last = Placed(moving, kernels, 24);
  RunToTheEnd(LocalCluster::Options::Hybrid(3, kWorkers, last));
  EXPECT_LT(DifferenceOf(last, served).relative, 1e-5);
}

}  // namespace
}  // namespace keelson
