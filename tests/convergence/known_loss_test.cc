// How near the example configurations come to the best scores that their generated records allow,
// with the real programs. Prints the figures.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/data/generated_clicks.h"
#include "core/data/generated_ctr.h"
#include "core/data/generated_pairs.h"
#include "core/data/generated_regression.h"
#include "core/data/generated_textures.h"
#include "core/data/generated_visits.h"
#include "gtest/gtest.h"
#include "tests/convergence/jobs.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr double kEvalRecords = 4000;

std::string ConfigText(const std::string& config) {
  return ReadFile(absl::StrCat("configs/", config, ".textproto")).value_or("");
}

// The last evaluation of a job of so many steps with two servers and two workers. `config`: its
// name, for what is printed.
std::optional<EvaluationLine> TrainText(const std::string& config, const std::string& text,
                                        int64_t steps) {
  Job job(kCluster, text);
  job.AddFlag(absl::StrCat("--training_steps=", steps));
  job.StartAll();
  job.ExpectAllDone(kHangLimit);
  const auto evaluations = ReadEvaluations(job.model_dir());
  EXPECT_TRUE(evaluations.ok()) << evaluations.status();
  if (!evaluations.ok()) return std::nullopt;
  const EvaluationLine& last = evaluations->back();
  EXPECT_EQ(last.step, *DoneStep(job.model_dir()));
  std::printf("%s: loss %.4f, step %ld\n", config.c_str(), last.metrics.at("loss"),
              static_cast<long>(last.step));
  std::fflush(stdout);
  return last;
}

std::optional<EvaluationLine> Train(const std::string& config, int64_t steps) {
  return TrainText(config, ConfigText(config), steps);
}

TEST(KnownLossTest, RegressionComesNearTheNoise) {
  const auto last = Train("regression_mlp", 6000);
  ASSERT_TRUE(last.has_value());
  // Four deviations of a mean of squares of normal numbers.
  const double noise = 4 * kBestRegressionLoss * std::sqrt(2 / kEvalRecords);
  EXPECT_GE(last->metrics.at("loss"), kBestRegressionLoss - noise);
  EXPECT_LE(last->metrics.at("loss"), 1.1 * kBestRegressionLoss + noise);
}

TEST(KnownLossTest, TexturesComeNearTheShareOfRightLabels) {
  const auto last = Train("textures_residual", 500);
  ASSERT_TRUE(last.has_value());
  const double noise =
      4 * std::sqrt(kBestTextureAccuracy * (1 - kBestTextureAccuracy) / kEvalRecords);
  EXPECT_LE(last->metrics.at("accuracy"), kBestTextureAccuracy + noise);
  EXPECT_GE(last->metrics.at("accuracy"), kBestTextureAccuracy - 0.02 - noise);
}

TEST(KnownLossTest, TwoTowersComeNearTheBestOfBothLosses) {
  const auto last = Train("two_towers", 3000);
  ASSERT_TRUE(last.has_value());
  const double clicked = last->metrics.at("loss/clicked"), spent = last->metrics.at("loss/spent");
  std::printf("clicked %.4f, spent %.4f\n", clicked, spent);
  EXPECT_NEAR(last->metrics.at("loss"), clicked + 0.5 * spent, 1e-5);
  // Four deviations; that of the cross-entropy of one record is below 0.5.
  const double clicked_noise = 4 * 0.5 / std::sqrt(kEvalRecords);
  const double spent_noise = 4 * kBestSpentLoss * std::sqrt(2 / kEvalRecords);
  EXPECT_GE(clicked, kBestClickedLoss - clicked_noise);
  EXPECT_LE(clicked, 1.05 * kBestClickedLoss + clicked_noise);
  EXPECT_GE(spent, kBestSpentLoss - spent_noise);
  EXPECT_LE(spent, 1.1 * kBestSpentLoss + spent_noise);
}

void ExpectNearTheBestLossOfClicks(const std::string& config) {
  const auto last = Train(config, 6000);
  ASSERT_TRUE(last.has_value());
  // Four deviations; that of the cross-entropy of one record is below 0.5.
  const double noise = 4 * 0.5 / std::sqrt(20000);
  EXPECT_GE(last->metrics.at("loss"), kBestClickLoss - noise);
  EXPECT_LE(last->metrics.at("loss"), 1.02 * kBestClickLoss + noise);
}

TEST(KnownLossTest, EmbeddingsComeNearTheBestLossOfClicks) {
  ExpectNearTheBestLossOfClicks("clicks_embeddings");
}

TEST(KnownLossTest, InteractionsOfEmbeddingsComeNearTheBestLossOfClicks) {
  ExpectNearTheBestLossOfClicks("dlrm_toy");
}

TEST(KnownLossTest, TwoTowersFindNearlyAsManyItemsAsCanBeFound) {
  const auto last = Train("two_towers_pairs", 600);
  ASSERT_TRUE(last.has_value());
  const double recall = last->metrics.at("recall@10"), ndcg = last->metrics.at("ndcg@10");
  std::printf("recall@10 %.4f, ndcg@10 %.4f\n", recall, ndcg);
  // Four deviations of 20,000 records; that of one record is at most a half.
  const double noise = 4 * 0.5 / std::sqrt(20000);
  EXPECT_LE(recall, kBestPairRecall + noise);
  EXPECT_GE(recall, 0.9 * kBestPairRecall - noise);
  EXPECT_LE(ndcg, kBestPairNdcg + noise);
  EXPECT_GE(ndcg, 0.9 * kBestPairNdcg - noise);
}

// Vectors that are 0 have gradients of 0: the machine without them has weights alone.
TEST(KnownLossTest, AFactorizationMachineOfRowsGainsByItsProducts) {
  constexpr int64_t kSteps = 2000;
  const std::string text = ConfigText("ctr_fm");
  const std::string of_weights =
      absl::StrReplaceAll(text, {{"normal { stddev: 0.05 }", "constant { value: 0 }"}});
  ASSERT_NE(text, of_weights);
  const auto machine = TrainText("ctr_fm", text, kSteps);
  const auto weights = TrainText("ctr_fm of weights", of_weights, kSteps);
  ASSERT_TRUE(machine.has_value() && weights.has_value());
  const double auc = machine->metrics.at("auc"), auc_of_weights = weights->metrics.at("auc");
  std::printf("auc %.4f, of weights %.4f\n", auc, auc_of_weights);
  // Four deviations of 50,000 records.
  constexpr double kAucNoise = 4 * 0.002;
  EXPECT_LE(auc, kBestCtrAuc + kAucNoise);
  EXPECT_LE(auc_of_weights, kBestAdditiveCtrAuc + kAucNoise);
  EXPECT_GE(machine->metrics.at("loss"), kBestCtrLoss - 4 * 0.5 / std::sqrt(50000));
  // Of the same records: what differs is the model.
  EXPECT_GE(auc, auc_of_weights + 0.004);
}

}  // namespace
}  // namespace keelson
