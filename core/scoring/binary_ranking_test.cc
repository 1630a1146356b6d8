#include "core/scoring/binary_ranking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

struct Example {
  float score = 0;
  bool positive = false;
};

RankingCurves CurvesOf(const std::vector<Example>& examples) {
  BinaryRanking ranking;
  for (const Example& example : examples) ranking.Add(example.score, example.positive);
  return RankingCurvesOf(ranking.ByScore());
}

// Uniform in [0, 1), by position.
double Uniform(uint64_t stream, uint64_t position) {
  return UniformFloat(Philox(11, stream, position)[0]);
}

// Two classes that overlap.
std::vector<Example> RandomExamples(size_t n, uint64_t stream, double share, float grid) {
  std::vector<Example> examples;
  for (size_t i = 0; i < n; ++i) {
    const bool positive = Uniform(stream, 2 * i) < share;
    const double score = Uniform(stream, 2 * i + 1) + (positive ? 0.4 : 0);
    examples.push_back({std::floor(static_cast<float>(score) * grid) / grid, positive});
  }
  return examples;
}

// By its meaning: how often an example of label 1 has the higher score.
double AucByPairs(const std::vector<Example>& examples) {
  double wins = 0;
  double pairs = 0;
  for (const Example& p : examples) {
    for (const Example& n : examples) {
      if (!p.positive || n.positive) continue;
      ++pairs;
      wins += p.score > n.score ? 1 : (p.score == n.score ? 0.5 : 0);
    }
  }
  return wins / pairs;
}

// Precision at the score of each example of label 1, averaged.
double AveragePrecisionByExamples(const std::vector<Example>& examples) {
  double sum = 0;
  double positives = 0;
  for (const Example& p : examples) {
    if (!p.positive) continue;
    ++positives;
    double right = 0;
    double all = 0;
    for (const Example& other : examples) {
      if (other.score < p.score) continue;
      ++all;
      right += other.positive ? 1 : 0;
    }
    sum += right / all;
  }
  return sum / positives;
}

TEST(BinaryRankingTest, ByHand) {
  const RankingCurves curves =
      CurvesOf({{0.1f, false}, {0.4f, false}, {0.35f, true}, {0.8f, true}});
  EXPECT_DOUBLE_EQ(curves.auc, 0.75);
  EXPECT_DOUBLE_EQ(curves.auc_pr, 0.5 * 1 + 0.5 * 2 / 3);
}

TEST(BinaryRankingTest, PerfectReversedAndEqual) {
  EXPECT_DOUBLE_EQ(CurvesOf({{-1, false}, {2, true}}).auc, 1);
  EXPECT_DOUBLE_EQ(CurvesOf({{-1, false}, {2, true}}).auc_pr, 1);
  EXPECT_DOUBLE_EQ(CurvesOf({{2, false}, {-1, true}}).auc, 0);
  EXPECT_DOUBLE_EQ(CurvesOf({{0.0f, false}, {-0.0f, true}, {0.0f, false}}).auc, 0.5);
  EXPECT_DOUBLE_EQ(CurvesOf({{3, false}, {3, true}, {3, false}}).auc_pr, 1.0 / 3);
}

TEST(BinaryRankingTest, AgreesWithTheDefinitions) {
  const float infinity = INFINITY;
  for (const double share : {0.02, 0.5, 0.9}) {
    for (const float grid : {10.0f, 1e6f}) {
      std::vector<Example> examples = RandomExamples(700, 1, share, grid);
      examples.insert(examples.end(), {{infinity, false}, {-infinity, true}, {-3, true}});
      const RankingCurves curves = CurvesOf(examples);
      EXPECT_NEAR(curves.auc, AucByPairs(examples), 1e-12) << share << " " << grid;
      EXPECT_NEAR(curves.auc_pr, AveragePrecisionByExamples(examples), 1e-12);
    }
  }
}

TEST(BinaryRankingTest, ThePointsAreThoseOfTheAreas) {
  for (const size_t n : {50u, 1000u, 20000u}) {
    const RankingCurves curves = CurvesOf(RandomExamples(n, 2, 0.3, 1e6f));
    ASSERT_LE(curves.roc.size(), RankingCurves::kMaxPoints);
    ASSERT_LE(curves.precision_recall.size(), RankingCurves::kMaxPoints);
    EXPECT_NEAR(AreaUnder(curves.roc), curves.auc, 1e-3) << n;
    // Trapezoids and steps differ by half a step's area at most.
    EXPECT_NEAR(AreaUnder(curves.precision_recall), curves.auc_pr, 1e-3 + 0.5 / (0.3 * n));
    EXPECT_EQ(curves.roc.front().x, 0);
    EXPECT_EQ(curves.roc.front().y, 0);
    EXPECT_EQ(curves.roc.back().x, 1);
    EXPECT_EQ(curves.roc.back().y, 1);
    EXPECT_EQ(curves.precision_recall.front().x, 0);
    EXPECT_EQ(curves.precision_recall.front().y, 1);
    EXPECT_EQ(curves.precision_recall.back().x, 1);
  }
}

TEST(BinaryRankingTest, WithoutBothLabelsThereIsNone) {
  for (const std::vector<Example>& examples :
       std::vector<std::vector<Example>>{{}, {{1, true}, {2, true}}, {{1, false}}}) {
    const RankingCurves curves = CurvesOf(examples);
    EXPECT_TRUE(std::isnan(curves.auc));
    EXPECT_TRUE(std::isnan(curves.auc_pr));
    EXPECT_TRUE(curves.roc.empty());
    EXPECT_TRUE(curves.precision_recall.empty());
  }
}

TEST(BinaryRankingTest, CountsByScore) {
  BinaryRanking ranking;
  for (const float score : {-1.0f, 2.0f, -1.0f}) ranking.Add(score, score > 0);
  ranking.Add(-1, true);
  const std::vector<ScoreCounts> by_score = ranking.ByScore();
  ASSERT_EQ(by_score.size(), 2u);
  EXPECT_EQ(by_score[0].score, 2);
  EXPECT_EQ(by_score[0].positives, 1);
  EXPECT_EQ(by_score[0].negatives, 0);
  EXPECT_EQ(by_score[1].score, -1);
  EXPECT_EQ(by_score[1].positives, 1);
  EXPECT_EQ(by_score[1].negatives, 2);
}

TEST(BinaryRankingTest, NotANumberLeavesNoOrder) {
  const float nan = NAN;
  EXPECT_TRUE(std::isnan(CurvesOf({{1, true}, {0, false}, {nan, true}}).auc));
}

// The middle of a bin stands for all of its scores.
TEST(BinaryRankingTest, ScoresInBinsStayNearlyTheSame) {
  BinaryRanking ranking;
  for (int64_t i = 0; i <= BinaryRanking::kExactScores; ++i) ranking.Add(0, false);
  const std::vector<float> scores = {INFINITY, 3e38f, 17.3f, 1e-30f, -0.001f, -9.99f, -INFINITY};
  for (const float score : scores) ranking.Add(score, true);
  size_t found = 0;
  for (const ScoreCounts& here : ranking.ByScore()) {
    if (here.negatives > 0) {
      EXPECT_NEAR(here.score, 0, 1e-38);
      continue;
    }
    ASSERT_LT(found, scores.size());
    const auto score = static_cast<double>(scores[found++]);
    if (std::isinf(score)) {
      EXPECT_EQ(here.score, score);
    } else {
      EXPECT_NEAR(here.score / score, 1, 0x1p-11);
    }
  }
  EXPECT_EQ(found, scores.size());
}

// More than it keeps. Scores whose first bits tell them apart are still exact.
TEST(BinaryRankingTest, ManyScoresAreCountedInBins) {
  constexpr int kLevels = 512;
  constexpr int64_t kExamples = BinaryRanking::kExactScores + 100000;
  BinaryRanking coarse;
  BinaryRanking fine;
  std::vector<double> positives(kLevels);
  std::vector<double> negatives(kLevels);
  std::vector<std::pair<float, bool>> all;
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto bits = Philox(5, 0, static_cast<uint64_t>(i));
    const bool positive = bits[0] % 4 == 0;
    // The higher of two draws for the label 1.
    const float draw = std::max(UniformFloat(bits[1]), positive ? UniformFloat(bits[2]) : 0.0f);
    const auto level = static_cast<int>(draw * kLevels);
    (positive ? positives : negatives)[level] += 1;
    coarse.Add(static_cast<float>(level - kLevels / 2) / 8, positive);
    fine.Add(draw, positive);
    all.emplace_back(draw, positive);
  }
  double wins = 0;
  double lower_negatives = 0;
  double all_positives = 0;
  for (size_t level = 0; level < kLevels; ++level) {
    wins += positives[level] * (lower_negatives + negatives[level] / 2);
    lower_negatives += negatives[level];
    all_positives += positives[level];
  }
  EXPECT_NEAR(RankingCurvesOf(coarse.ByScore()).auc, wins / lower_negatives / all_positives, 1e-12);

  std::sort(all.begin(), all.end());
  wins = 0;
  double below = 0;
  for (const std::pair<float, bool>& example : all) {
    if (example.second) wins += below;
    below += example.second ? 0 : 1;
  }
  const RankingCurves curves = RankingCurvesOf(fine.ByScore());
  EXPECT_NEAR(curves.auc, wins / lower_negatives / all_positives, 1e-4);
  EXPECT_LE(curves.roc.size(), RankingCurves::kMaxPoints);
  EXPECT_NEAR(AreaUnder(curves.roc), curves.auc, 1e-3);
}

}  // namespace
}  // namespace keelson
