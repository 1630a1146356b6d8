#include "core/scoring/group_ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/random.h"
#include "core/scoring/binary_ranking.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

struct Member {
  uint64_t group = 0;
  float score = 0;
  bool positive = false;
};

GroupRankingFigures FiguresOf(const std::vector<Member>& examples,
                              size_t most = GroupRanking::kMostExamples) {
  GroupRanking ranking(most);
  for (const Member& each : examples) ranking.Add(each.group, each.score, each.positive);
  return ranking.Figures();
}

// Groups of different sizes with overlapping scores, many of which are equal.
std::vector<Member> RandomMembers(size_t n, uint64_t groups) {
  std::vector<Member> examples;
  for (size_t i = 0; i < n; ++i) {
    const auto bits = Philox(7, 0, i);
    const bool positive = bits[0] % 3 == 0;
    const float draw = UniformFloat(bits[1]) + (positive ? 0.3f : 0.0f);
    const float uniform = UniformFloat(bits[2]);
    const auto group = static_cast<uint64_t>(uniform * uniform * static_cast<float>(groups));
    examples.push_back({group, std::floor(draw * 20) / 20, positive});
  }
  return examples;
}

TEST(GroupRankingTest, ByHand) {
  const GroupRankingFigures figures = FiguresOf({
      {1, 0.1f, false},
      {1, 0.4f, false},
      {1, 0.35f, true},
      {1, 0.8f, true},  // 3 pairs of 4
      {2, -1, true},
      {2, -1, false},  // equal
      {3, 9, true},
      {3, -9, true},
      {4, 3, false},  // no pairs
  });
  EXPECT_DOUBLE_EQ(figures.auc, (4 * 0.75 + 2 * 0.5) / 6);
  EXPECT_DOUBLE_EQ(figures.mean_auc, (0.75 + 0.5) / 2);
  EXPECT_EQ(figures.groups, 2);
  EXPECT_EQ(figures.examples, 6);
  EXPECT_EQ(figures.one_label_groups, 2);
  EXPECT_EQ(figures.sampled, 1);
}

// A group's scores need not be comparable with those of others.
TEST(GroupRankingTest, OrderAcrossGroupsDoesNotCount) {
  const GroupRankingFigures figures =
      FiguresOf({{1, 10, false}, {2, -5, false}, {1, 11, true}, {2, -4, true}});
  EXPECT_EQ(figures.auc, 1);
  EXPECT_EQ(figures.mean_auc, 1);
}

TEST(GroupRankingTest, EachGroupHasTheAreaOfItsRanking) {
  const std::vector<Member> examples = RandomMembers(3000, 40);
  std::map<uint64_t, BinaryRanking> rankings;
  std::map<uint64_t, double> sizes;
  for (const Member& each : examples) {
    rankings[each.group].Add(each.score, each.positive);
    ++sizes[each.group];
  }
  double sum = 0;
  double weighted = 0;
  double weights = 0;
  double groups = 0;
  for (const auto& [group, ranking] : rankings) {
    const double auc = RankingCurvesOf(ranking.ByScore()).auc;
    if (std::isnan(auc)) continue;
    sum += auc;
    weighted += auc * sizes[group];
    weights += sizes[group];
    ++groups;
  }
  ASSERT_GT(groups, 30);
  const GroupRankingFigures figures = FiguresOf(examples);
  EXPECT_NEAR(figures.auc, weighted / weights, 1e-12);
  EXPECT_NEAR(figures.mean_auc, sum / groups, 1e-12);
  EXPECT_EQ(figures.groups, groups);
}

TEST(GroupRankingTest, ManyExamplesAreSampledByWholeGroups) {
  const std::vector<Member> examples = RandomMembers(40000, 4000);
  const GroupRankingFigures all = FiguresOf(examples);
  const GroupRankingFigures some = FiguresOf(examples, 9000);
  EXPECT_EQ(some.sampled, 1.0 / 8);
  EXPECT_LE(some.examples, 9000);
  EXPECT_NEAR(static_cast<double>(some.groups) / static_cast<double>(all.groups), 0.125, 0.03);
  EXPECT_NEAR(some.auc, all.auc, 0.03);
  EXPECT_NEAR(some.mean_auc, all.mean_auc, 0.03);
}

TEST(GroupRankingTest, TheSampleDoesNotDependOnTheOrder) {
  std::vector<Member> examples = RandomMembers(20000, 4000);
  const GroupRankingFigures forwards = FiguresOf(examples, 3000);
  std::reverse(examples.begin(), examples.end());
  const GroupRankingFigures backwards = FiguresOf(examples, 3000);
  EXPECT_LT(forwards.sampled, 1);
  EXPECT_EQ(forwards.sampled, backwards.sampled);
  EXPECT_EQ(forwards.groups, backwards.groups);
  EXPECT_EQ(forwards.examples, backwards.examples);
  EXPECT_NEAR(forwards.auc, backwards.auc, 1e-12);
}

TEST(GroupRankingTest, AGroupThatIsTooLargeLeavesNothing) {
  std::vector<Member> examples;
  for (size_t i = 0; i < 101; ++i) examples.push_back({5, static_cast<float>(i), i % 2 == 0});
  EXPECT_EQ(FiguresOf(examples, 101).groups, 1);
  const GroupRankingFigures figures = FiguresOf(examples, 100);
  EXPECT_EQ(figures.groups, 0);
  EXPECT_TRUE(std::isnan(figures.auc));
}

TEST(GroupRankingTest, WithoutBothLabelsInAGroupThereIsNone) {
  for (const std::vector<Member>& examples :
       {std::vector<Member>(), {{1, 1, true}, {2, 0, false}}}) {
    const GroupRankingFigures figures = FiguresOf(examples);
    EXPECT_TRUE(std::isnan(figures.auc));
    EXPECT_TRUE(std::isnan(figures.mean_auc));
  }
}

TEST(GroupRankingTest, NotANumberLeavesNoOrder) {
  const float nan = NAN;
  const GroupRankingFigures figures =
      FiguresOf({{1, 1, true}, {1, 0, false}, {2, nan, true}, {1, 2, true}});
  EXPECT_TRUE(std::isnan(figures.auc));
  EXPECT_TRUE(std::isnan(figures.mean_auc));
}

}  // namespace
}  // namespace keelson
