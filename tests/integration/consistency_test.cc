// Jobs whose workers wait for each other, and jobs that change how they do.
#include "core/cluster/consistency.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int kBatch = 8;

// Records are a multiple of every batch size used here, so that no step is smaller than another.
v1::TrainConfig EvenConfig(int64_t batch_size, int64_t steps) {
  v1::TrainConfig config = SmallConfig(FreshDirectory());
  config.mutable_data()->mutable_generated()->set_train_records(96);
  config.mutable_train()->set_batch_size(batch_size);
  config.mutable_train()->set_max_steps(steps);
  config.mutable_train()->set_summary_steps(1);
  // The workers of a round clip their own gradients, one worker clips the mean.
  config.mutable_optimizer()->clear_clip_global_norm();
  return config;
}

v1::TrainConfig SynchronousConfig(int64_t aggregate, int64_t total, int64_t steps) {
  v1::TrainConfig config = EvenConfig(kBatch, steps);
  auto* sync = config.mutable_consistency()->mutable_mode()->mutable_synchronous();
  sync->set_replicas_to_aggregate(aggregate);
  sync->set_total_replicas(total);
  EXPECT_TRUE(FinalizeTrainConfig(&config).ok());
  return config;
}

std::string FinalPrefix(const v1::TrainConfig& config) {
  return absl::StrCat(config.checkpoint().model_dir(), "/model.ckpt-", config.train().max_steps());
}

std::map<std::string, Tensor> FinalModel(const v1::TrainConfig& config) {
  std::map<std::string, Tensor> tensors;
  const auto bundle = BundleReader::Open(FinalPrefix(config));
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  if (!bundle.ok()) return tensors;
  for (const TensorInfo& info : (*bundle)->List()) {
    if (info.dtype != BundleDtype::kFloat32) continue;
    auto tensor = (*bundle)->ReadTensor(info.name);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    if (tensor.ok()) tensors.emplace(info.name, *std::move(tensor));
  }
  return tensors;
}

// Largest difference of any element, slots included.
double LargestDifference(const v1::TrainConfig& a, const v1::TrainConfig& b) {
  const auto first = FinalModel(a);
  const auto second = FinalModel(b);
  EXPECT_EQ(first.size(), second.size());
  double largest = 0;
  for (const auto& [name, tensor] : first) {
    const auto found = second.find(name);
    EXPECT_NE(found, second.end()) << name;
    if (found == second.end()) continue;
    EXPECT_EQ(tensor.shape(), found->second.shape()) << name;
    for (int64_t i = 0; i < tensor.shape().num_elements(); ++i) {
      const double difference = std::abs(tensor.data()[i] - found->second.data()[i]);
      largest = std::max(largest, difference);
    }
  }
  return largest;
}

// Work begins when all workers have joined: who comes when the job is over would wait in vain.
void StartTogether(int workers, LocalCluster* cluster) {
  cluster->gate().CloseAt(0);
  cluster->Start();
  cluster->WaitForWorkers(workers);
  cluster->gate().Open();
}

void RunToTheEnd(const LocalCluster::Options& options) {
  LocalCluster cluster(options);
  StartTogether(options.workers, &cluster);
  cluster.ExpectDone();
}

class SynchronousEqualityTest : public testing::TestWithParam<int> {};

TEST_P(SynchronousEqualityTest, KWorkersOnBAreOneWorkerOnKTimesB) {
  constexpr int kWorkers = 3;
  const int steps = GetParam();
  const v1::TrainConfig together = SynchronousConfig(kWorkers, kWorkers, steps);
  v1::TrainConfig alone = EvenConfig(kWorkers * kBatch, steps);
  ASSERT_TRUE(FinalizeTrainConfig(&alone).ok());
  RunToTheEnd({2, kWorkers, false, together});
  RunToTheEnd({1, 1, false, alone});
  EXPECT_LT(LargestDifference(together, alone), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(AfterSteps, SynchronousEqualityTest, testing::Values(1, 2, 3, 5, 9, 17),
                         testing::PrintToStringParamName());

TEST(SynchronousTest, FewerWorkersThanReplicasTakeSeveralBatches) {
  const v1::TrainConfig together = SynchronousConfig(3, 3, 7);
  v1::TrainConfig alone = EvenConfig(3 * kBatch, 7);
  ASSERT_TRUE(FinalizeTrainConfig(&alone).ok());
  RunToTheEnd({2, 1, false, together});
  RunToTheEnd({1, 1, false, alone});
  EXPECT_LT(LargestDifference(together, alone), 2e-5);
}

TEST(SynchronousTest, BackupWorkersAreDroppedNotAdded) {
  const v1::TrainConfig config = SynchronousConfig(2, 3, 60);
  LocalCluster cluster({2, 3, false, config});
  StartTogether(3, &cluster);
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 60);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 60);
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.totals.steps(), 2 * 60);
}

TEST(SynchronousTest, AWorkerThatDiesMidStepDoesNotStallOrPoisonIt) {
  const v1::TrainConfig config = SynchronousConfig(3, 3, 40);
  LocalCluster cluster({2, 3, false, config, /*lease_seconds=*/1});
  cluster.gate().CloseAt(30);
  cluster.Start();
  cluster.WaitForStep(5);
  cluster.link_of_worker(0).Sever();
  cluster.KillWorker(0);
  cluster.gate().Open();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 40);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 40);
  // The records of the rounds are those on which a single worker would have trained.
  v1::TrainConfig alone = EvenConfig(3 * kBatch, 40);
  ASSERT_TRUE(FinalizeTrainConfig(&alone).ok());
  RunToTheEnd({1, 1, false, alone});
  EXPECT_LT(LargestDifference(config, alone), 1e-4);
}

TEST(SynchronousTest, ARestartedServerDoesNotStallIt) {
  const v1::TrainConfig config = SynchronousConfig(2, 2, 60);
  LocalCluster cluster({2, 2, false, config});
  cluster.gate().CloseAt(60);
  cluster.Start();
  cluster.WaitForStep(20);
  cluster.KillServer(1);
  cluster.StartServer(1);
  cluster.gate().Open();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 60);
  EXPECT_EQ(cluster.ShardStatus(0).shard_step(), 60);
}

TEST(ModeTest, ChangesInARunningJob) {
  v1::TrainConfig config = EvenConfig(kBatch, 600);
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  LocalCluster cluster({2, 2, false, config});
  StartTogether(2, &cluster);
  int64_t step = 0;
  for (const char* mode : {"sync:2", "ssp:3", "sync:1/2", "async", "ssp:0"}) {
    cluster.WaitForStep(step += 50);
    const auto parsed = ConsistencyMode::Parse(mode);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const absl::Status status = cluster.chief().coordinator()->control()->SetMode(*parsed);
    EXPECT_TRUE(status.ok()) << mode << ": " << status;
  }
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 600);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 600);
}

TEST(BoundedStalenessTest, NobodyGetsFurtherAheadThanTheBound) {
  v1::TrainConfig config = EvenConfig(kBatch, 300);
  config.mutable_consistency()->mutable_mode()->mutable_bounded_staleness()->set_staleness(2);
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  LocalCluster cluster({1, 2, false, config});
  StartTogether(2, &cluster);
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 300);
  // Between the values of a step and its push, the other worker is at most bound + 1 steps ahead of
  // this one's last step, and was at most as many behind it.
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_LE(status.totals.staleness_max(), 2 * (2 + 1));
}

}  // namespace
}  // namespace keelson
