// Jobs that run from the start to the end without trouble.
#include <tuple>

#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

class JobSizeTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(JobSizeTest, TrainsExactlyMaxSteps) {
  const auto [servers, workers] = GetParam();
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({servers, workers, false, SmallConfig(model_dir)});
  cluster.Start();
  cluster.ExpectDone();

  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.phase, JobPhase::kDone);
  EXPECT_EQ(status.step, 48);
  EXPECT_EQ(status.totals.steps(), 48);
  // 100 records: batches of 8, the last one of an epoch has 4.
  EXPECT_EQ(status.totals.examples(), 3 * 100 + 9 * 8);
  EXPECT_EQ(*DoneStep(model_dir), 48);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 48);
  for (int s = 0; s < servers; ++s) {
    EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 48) << "ps-" << s;
    EXPECT_EQ(cluster.ShardStatus(s).duplicate_blocks(), 0) << "ps-" << s;
    EXPECT_TRUE(cluster.ServerFinished(s)) << "ps-" << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, JobSizeTest,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(1, 2, 4)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "Servers",
                                               std::get<1>(info.param), "Workers");
                         });

// The model that one worker trains with this many servers, and the initial one.
struct TrainedModel {
  ModelValues initial;
  ModelValues final;
};

TrainedModel TrainWith(int servers) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({servers, 1, false, SmallConfig(model_dir)});
  cluster.Start();
  cluster.ExpectDone();
  return {*ReadModelValues(model_dir + "/model.ckpt-0"),
          *ReadModelValues(model_dir + "/model.ckpt-48")};
}

TEST(JobTest, NumberOfServersChangesNothing) {
  const TrainedModel one = TrainWith(1);
  ASSERT_EQ(one.initial.size(), 8);  // four variables with a slot each
  EXPECT_NE(one.initial, one.final);
  for (const int servers : {2, 5}) {
    const TrainedModel other = TrainWith(servers);
    EXPECT_TRUE(one.initial == other.initial) << servers << " servers";
    EXPECT_TRUE(one.final == other.final) << servers << " servers";
  }
}

TEST(JobTest, SixteenWorkersAtOnce) {
  const std::string model_dir = FreshDirectory();
  v1::TrainConfig config = SmallConfig(model_dir);
  config.mutable_train()->set_max_steps(160);
  LocalCluster cluster({2, 16, false, config});
  cluster.Start();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(model_dir), 160);
  EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().totals.steps(), 160);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 160);
}

TEST(JobTest, EvaluatorScoresTheFinalSnapshot) {
  const std::string model_dir = FreshDirectory();
  LocalCluster cluster({2, 2, true, SmallConfig(model_dir)});
  cluster.Start();
  cluster.ExpectDone();
  const auto evaluations = ReadEvaluations(model_dir);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_FALSE(evaluations->empty());
  EXPECT_EQ(evaluations->back().step, 48);
  EXPECT_TRUE(evaluations->back().metrics.contains("accuracy"));
  EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().evaluated_step, 48);
}

}  // namespace
}  // namespace keelson
