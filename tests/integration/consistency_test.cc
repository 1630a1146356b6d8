// Jobs whose workers wait for each other, and jobs that change how they do.
#include "core/cluster/consistency.h"

#include "core/config/train_config.h"
#include "gtest/gtest.h"
#include "tests/support/equal_jobs.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_difference.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int kBatch = 8;

class SynchronousEqualityTest : public testing::TestWithParam<int> {};

TEST_P(SynchronousEqualityTest, KWorkersOnBAreOneWorkerOnKTimesB) {
  constexpr int kWorkers = 3;
  const int steps = GetParam();
  const v1::TrainConfig together = SynchronousConfig(kBatch, kWorkers, kWorkers, steps);
  v1::TrainConfig alone = EvenConfig(kWorkers * kBatch, steps);
  ASSERT_TRUE(FinalizeTrainConfig(&alone).ok());
  RunToTheEnd({2, kWorkers, false, together});
  RunToTheEnd({1, 1, false, alone});
  EXPECT_LT(DifferenceOf(together, alone).absolute, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(AfterSteps, SynchronousEqualityTest, testing::Values(1, 2, 3, 5, 9, 17),
                         testing::PrintToStringParamName());

TEST(SynchronousTest, FewerWorkersThanReplicasTakeSeveralBatches) {
  const v1::TrainConfig together = SynchronousConfig(kBatch, 3, 3, 7);
  v1::TrainConfig alone = EvenConfig(3 * kBatch, 7);
  ASSERT_TRUE(FinalizeTrainConfig(&alone).ok());
  RunToTheEnd({2, 1, false, together});
  RunToTheEnd({1, 1, false, alone});
  EXPECT_LT(DifferenceOf(together, alone).absolute, 2e-5);
}

TEST(SynchronousTest, BackupWorkersAreDroppedNotAdded) {
  const v1::TrainConfig config = SynchronousConfig(kBatch, 2, 3, 60);
  LocalCluster cluster({2, 3, false, config});
  StartTogether(3, &cluster);
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(config.checkpoint().model_dir()), 60);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 60);
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.totals.steps(), 2 * 60);
}

TEST(SynchronousTest, AWorkerThatDiesMidStepDoesNotStallOrPoisonIt) {
  const v1::TrainConfig config = SynchronousConfig(kBatch, 3, 3, 40);
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
  EXPECT_LT(DifferenceOf(config, alone).absolute, 1e-4);
}

TEST(SynchronousTest, ARestartedServerDoesNotStallIt) {
  const v1::TrainConfig config = SynchronousConfig(kBatch, 2, 2, 60);
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
