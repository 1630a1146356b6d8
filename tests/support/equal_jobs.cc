#include "tests/support/equal_jobs.h"

#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"

namespace keelson {
v1::TrainConfig EvenConfig(int64_t batch_size, int64_t steps, int64_t records) {
  v1::TrainConfig config = SmallConfig(FreshDirectory());
  config.mutable_data()->mutable_generated()->set_train_records(records);
  config.mutable_train()->set_batch_size(batch_size);
  config.mutable_train()->set_max_steps(steps);
  config.mutable_train()->set_summary_steps(1);
  config.mutable_optimizer()->clear_clip_global_norm();
  return config;
}

v1::TrainConfig SynchronousConfig(int64_t batch_size, int64_t aggregate, int64_t total,
                                  int64_t steps, int64_t records) {
  v1::TrainConfig config = EvenConfig(batch_size, steps, records);
  auto* sync = config.mutable_consistency()->mutable_mode()->mutable_synchronous();
  sync->set_replicas_to_aggregate(aggregate);
  sync->set_total_replicas(total);
  EXPECT_TRUE(FinalizeTrainConfig(&config).ok());
  return config;
}

void StartTogether(int trainers, LocalCluster* cluster) {
  cluster->gate().CloseAt(0);
  cluster->Start();
  cluster->WaitForWorkers(trainers);
  cluster->gate().Open();
}

void RunToTheEnd(const LocalCluster::Options& options) {
  LocalCluster cluster(options);
  StartTogether(options.workers + (options.chief_trains ? 1 : 0), &cluster);
  cluster.ExpectDone();
}

}  // namespace keelson
