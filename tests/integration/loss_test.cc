// Jobs that lose a member in the middle.
#include <algorithm>

#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

// Severs the link as soon as a lease of at least two tickets has been granted: the worker trains on
// it, and cannot report it.
void AwaitLeaseAndSever(FaultyChiefService* link) {
  link->After(&ChiefService::AcquireWork, [link](const auto&, auto* response) {
    if (response->tickets_size() >= 2) link->Sever();
    return absl::OkStatus();
  });
  link->AwaitSevered();
}

TEST(LossTest, WorkOfALostWorkerGoesToOthers) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({2, 2, false, LongerConfig(model_dir)});
  cluster.StartServer(0);
  cluster.StartServer(1);
  cluster.StartChief();
  cluster.StartWorker(0);
  AwaitLeaseAndSever(&cluster.link_of_worker(0));
  cluster.KillWorker(0);
  cluster.StartWorker(1);
  cluster.ExpectDone();

  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.step, 200);
  EXPECT_EQ(*DoneStep(model_dir), 200);
  // Nothing that was done counts twice, and what was not reported was done again: an epoch's
  // records are all trained on.
  EXPECT_EQ(status.totals.steps(), 200);
  EXPECT_EQ(status.totals.examples(), 15 * 100 + 5 * 8);
  const bool lost = std::any_of(status.members.begin(), status.members.end(), [](const Member& m) {
    return m.task == Task{Role::kWorker, 0} && m.state == Member::kLost;
  });
  EXPECT_TRUE(lost);
}

TEST(LossTest, AReplacementTakesTheTaskOfALostWorker) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({1, 1, false, LongerConfig(model_dir)});
  cluster.StartServer(0);
  cluster.StartChief();
  cluster.StartWorker(0);
  AwaitLeaseAndSever(&cluster.link_of_worker(0));
  cluster.KillWorker(0);
  cluster.StartWorker(0);
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().totals.steps(), 200);
}

TEST(LossTest, ARestartedServerGetsItsShardFromTheNewestSnapshot) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({2, 2, false, LongerConfig(model_dir)});
  cluster.gate().CloseAt(150);
  cluster.Start();
  cluster.WaitForSnapshot(16);
  const uint64_t first_life = cluster.ShardStatus(1).store_id();
  cluster.KillServer(1);
  cluster.StartServer(1);
  cluster.gate().Open();
  cluster.ExpectDone();

  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 200);
  EXPECT_NE(cluster.ShardStatus(1).store_id(), first_life);
  // Less than all: what the server had applied since the snapshot is lost. More than what came
  // after the restart: it did not start over.
  EXPECT_LE(cluster.ShardStatus(1).shard_step(), 200);
  EXPECT_GE(cluster.ShardStatus(1).shard_step(), 16 + 200 - 150);
  EXPECT_EQ(cluster.ShardStatus(0).shard_step(), 200);
}

TEST(LossTest, ARestartedChiefContinuesFromTheLastSnapshot) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({2, 2, false, LongerConfig(model_dir)});
  cluster.gate().CloseAt(150);
  cluster.Start();
  cluster.WaitForSnapshot(16);
  cluster.KillChief();
  const int64_t snapshot_step = *VerifiedLatestStep(model_dir);
  cluster.StartChief();
  // Who finds it only when the job is over would wait for it in vain.
  cluster.WaitForWorkers(2);
  cluster.gate().Open();
  cluster.ExpectDone();

  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 200);
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_GE(snapshot_step, 16);
  EXPECT_EQ(status.step, 200);
}

TEST(LossTest, AllServersRestartedAtOnce) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({2, 2, false, LongerConfig(model_dir)});
  cluster.gate().CloseAt(150);
  cluster.Start();
  cluster.WaitForSnapshot(16);
  cluster.KillServer(0);
  cluster.KillServer(1);
  cluster.StartServer(0);
  cluster.StartServer(1);
  cluster.gate().Open();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 200);
}

}  // namespace
}  // namespace keelson
