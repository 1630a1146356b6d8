// Jobs without parameter servers: what the tasks come to together.
#include <google/protobuf/text_format.h>

#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"
#include "tests/support/equal_jobs.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_difference.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int kBatch = 4;
constexpr int kSteps = 25;
// A multiple of the batches of 1 to 5 tasks together.
constexpr int kRecords = 240;

struct Optimizer {
  const char* name;
  const char* text;
};

constexpr Optimizer kOptimizers[] = {
    {"Sgd", "sgd {}"}, {"Momentum", "momentum { momentum: 0.9 }"}, {"Adam", "adam {}"}};

v1::TrainConfig ConfigOf(int batch_size, const Optimizer& optimizer) {
  v1::TrainConfig config = EvenConfig(batch_size, kSteps, kRecords);
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(optimizer.text, config.mutable_optimizer()));
  if (config.optimizer().has_adam()) config.mutable_learning_rate()->set_base(0.001f);
  EXPECT_TRUE(FinalizeTrainConfig(&config).ok());
  return config;
}

// A job that one worker has done with a server; each is run once.
const v1::TrainConfig& JobOfOneWorker(int batch_size, const Optimizer& optimizer) {
  static std::map<std::pair<int, std::string>, v1::TrainConfig> jobs;
  const auto [job, is_new] = jobs.try_emplace({batch_size, optimizer.name});
  if (is_new) {
    job->second = ConfigOf(batch_size, optimizer);
    RunToTheEnd({.config = job->second});
  }
  return job->second;
}

using Members = std::tuple<int, bool, Optimizer>;  // workers, whether the chief trains

std::string NameOf(const testing::TestParamInfo<Members>& info) {
  const auto& [workers, chief_trains, optimizer] = info.param;
  return absl::StrCat(optimizer.name, workers, "Workers", chief_trains ? "AndChief" : "");
}

class CollectiveEqualityTest : public testing::TestWithParam<Members> {};

// Without a mode in the configuration a step is the mean of the batches of all that train.
TEST_P(CollectiveEqualityTest, AllThatTrainAreOneWorkerOnTheirBatchesTogether) {
  const auto& [workers, chief_trains, optimizer] = GetParam();
  const v1::TrainConfig together = ConfigOf(kBatch, optimizer);
  RunToTheEnd(LocalCluster::Options::Collective(chief_trains, workers, together));
  const int tasks = workers + (chief_trains ? 1 : 0);
  const ModelDifference difference =
      DifferenceOf(together, JobOfOneWorker(kBatch * tasks, optimizer));
  // Sums are made in the order of arrival. Adam divides small sums by their own size, so the last
  // bits in which they differ count for more, and five gradients have more orders than four.
  EXPECT_LT(difference.relative, tasks > 4 ? 5e-5 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Tasks, CollectiveEqualityTest,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Bool(),
                                          testing::ValuesIn(kOptimizers)),
                         NameOf);

// The job's configuration when it ends at another step.
v1::TrainConfig Until(int64_t step, v1::TrainConfig config) {
  config.mutable_train()->set_max_steps(step);
  return config;
}

// Values and slots come over, and the data goes on where it was.
TEST(CollectiveSnapshotTest, GoesToServersAndBack) {
  for (const Optimizer& optimizer : kOptimizers) {
    v1::TrainConfig config = ConfigOf(kBatch, optimizer);
    auto* sync = config.mutable_consistency()->mutable_mode()->mutable_synchronous();
    sync->set_replicas_to_aggregate(3);
    sync->set_total_replicas(3);
    RunToTheEnd(LocalCluster::Options::Collective(/*chief_trains=*/true, 2, Until(8, config)));
    RunToTheEnd({.servers = 2, .workers = 2, .config = Until(16, config)});
    RunToTheEnd(LocalCluster::Options::Collective(/*chief_trains=*/false, 3, config));
    EXPECT_LT(DifferenceOf(config, JobOfOneWorker(3 * kBatch, optimizer)).relative, 1e-5)
        << optimizer.name;
  }
}

// Trains some steps more, and stops as by SIGTERM. Returns the mode.
std::string TrainOn(const LocalCluster::Options& options) {
  const std::string& model_dir = options.config.checkpoint().model_dir();
  const int64_t before = VerifiedLatestStep(model_dir).value_or(0);
  LocalCluster cluster(options);
  cluster.Start();
  cluster.WaitForStep(before + 5);
  std::string mode = cluster.chief().coordinator()->control()->mode().ToString();
  const absl::Status status = cluster.StopChief();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_GE(*VerifiedLatestStep(model_dir), before + 5);
  return mode;
}

// A job goes on as it began, whichever cluster decided that.
TEST(CollectiveSnapshotTest, TheModeThatTheFirstClusterDecidedGoesWithIt) {
  const v1::TrainConfig collective = Until(1'000'000, ConfigOf(kBatch, kOptimizers[1]));
  EXPECT_EQ(TrainOn(LocalCluster::Options::Collective(true, 2, collective)), "sync:3");
  EXPECT_EQ(TrainOn({.servers = 2, .workers = 2, .config = collective}), "sync:3");
  EXPECT_EQ(TrainOn(LocalCluster::Options::Collective(false, 2, collective)), "sync:3");
  const v1::TrainConfig served = Until(1'000'000, ConfigOf(kBatch, kOptimizers[1]));
  EXPECT_EQ(TrainOn({.servers = 2, .workers = 2, .config = served}), "async");
  EXPECT_EQ(TrainOn(LocalCluster::Options::Collective(true, 2, served)), "async");
}

}  // namespace
}  // namespace keelson
