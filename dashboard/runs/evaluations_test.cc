#include "dashboard/runs/evaluations.h"

#include <gmock/gmock.h>

#include <cmath>

#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

constexpr char kMetricsPath[] = "eval/metrics.jsonl";

class EvaluationsTest : public testing::Test {
 protected:
  std::vector<int64_t> Poll(size_t max_bytes = 1 << 20) {
    std::vector<Evaluation> evaluations;
    more_ = tail_.Poll(max_bytes, &evaluations);
    std::vector<int64_t> steps;
    for (const Evaluation& evaluation : evaluations) steps.push_back(evaluation.step);
    return steps;
  }

  MemoryFileSystem memory_;
  RunFiles files_{&memory_, "/run"};
  EvaluationTail tail_{&memory_, "/run/eval/metrics.jsonl"};
  bool more_ = false;
};

std::map<int64_t, Evaluation> Accuracies(const std::map<int64_t, double>& values) {
  std::map<int64_t, Evaluation> evaluations;
  for (const auto& [step, value] : values) {
    evaluations[step].metrics = {{"accuracy", value}, {"loss", value}};
  }
  return evaluations;
}

TEST_F(EvaluationsTest, ALineIsAnEvaluation) {
  const auto evaluation = ParseEvaluation(
      R"({"step":100,"wall_time":1700000000.5,"loss":0.25,"auc":null,"examples":2000,"seconds":0.8})");
  ASSERT_TRUE(evaluation.has_value());
  EXPECT_EQ(evaluation->step, 100);
  EXPECT_EQ(evaluation->time, 1700000000.5);
  EXPECT_EQ(evaluation->examples, 2000);
  EXPECT_EQ(evaluation->seconds, 0.8);
  EXPECT_EQ(evaluation->metrics.size(), 2u);
  EXPECT_EQ(evaluation->metrics.at("loss"), 0.25);
  EXPECT_TRUE(std::isnan(evaluation->metrics.at("auc")));
}

TEST_F(EvaluationsTest, WhatIsNoEvaluation) {
  for (const char* line : {"", "x", "[]", "{}", "{\"step\":-1}", "{\"step\":1.5}",
                           "{\"step\":\"1\"}", "{\"step\":1", "null"}) {
    EXPECT_EQ(ParseEvaluation(line), std::nullopt) << line;
  }
}

TEST_F(EvaluationsTest, MetricsThatAreNoNumbersAreLeftOut) {
  const auto evaluation = ParseEvaluation(R"({"step":1,"loss":"0.1","accuracy":[1],"auc":0.5})");
  ASSERT_TRUE(evaluation.has_value());
  EXPECT_THAT(evaluation->metrics, testing::ElementsAre(testing::Pair("auc", 0.5)));
}

TEST_F(EvaluationsTest, FollowsTheFile) {
  EXPECT_THAT(Poll(), testing::IsEmpty());
  EXPECT_TRUE(tail_.trouble().ok());
  files_.Append(kMetricsPath, EvaluationLine(100, 1.7e9, 0.5, 0.9));
  EXPECT_THAT(Poll(), testing::ElementsAre(100));
  const std::string line = EvaluationLine(200, 1.7e9, 0.5, 0.9);
  files_.Append(kMetricsPath, line.substr(0, 20));
  EXPECT_THAT(Poll(), testing::IsEmpty());
  files_.Append(kMetricsPath, line.substr(20) + EvaluationLine(300, 1.7e9, 0.5, 0.9));
  EXPECT_THAT(Poll(), testing::ElementsAre(200, 300));
}

TEST_F(EvaluationsTest, ALongFileIsReadInParts) {
  std::string content;
  for (int step = 0; step < 50; ++step) content += EvaluationLine(step, 1.7e9, 0.5, 0.9);
  files_.Write(kMetricsPath, content);
  size_t found = 0;
  int polls = 0;
  do {
    found += Poll(200).size();
    ASSERT_LT(++polls, 100);
  } while (more_);
  EXPECT_EQ(found, 50u);
  EXPECT_GT(polls, 5);
}

TEST_F(EvaluationsTest, LinesThatMakeNoSenseAreLeftOutAndTold) {
  files_.Write(kMetricsPath, "nonsense\n" + EvaluationLine(100, 1.7e9, 0.5, 0.9) + "{}\n");
  EXPECT_THAT(Poll(), testing::ElementsAre(100));
  EXPECT_EQ(tail_.trouble().message(), "/run/eval/metrics.jsonl: 2 of 3 lines are no evaluations");
}

TEST_F(EvaluationsTest, AFileThatWasReplacedIsReadAgain) {
  files_.Write(kMetricsPath, EvaluationLine(100, 1.7e9, 0.5, 0.9));
  EXPECT_THAT(Poll(), testing::ElementsAre(100));
  // Longer than before: only the middle of a line tells.
  files_.Write(kMetricsPath,
               EvaluationLine(1, 1.7e9, 0.123456, 0.9) + EvaluationLine(2, 1.7e9, 0.5, 0.9));
  std::vector<int64_t> steps = Poll();
  while (more_) {
    for (const int64_t step : Poll()) steps.push_back(step);
  }
  EXPECT_THAT(steps, testing::IsSupersetOf({1, 2}));
  EXPECT_TRUE(tail_.trouble().ok()) << tail_.trouble();
}

MetricFigures FiguresOf(const std::map<int64_t, Evaluation>& evaluations) {
  MetricFigures figures;
  for (const auto& [step, evaluation] : evaluations) {
    Evaluation told = evaluation;
    told.step = step;
    TakeMetrics(told, &figures);
  }
  return figures;
}

TEST(TakeMetrics, KeepsTheLastAndTheFirstOfTheBest) {
  const MetricFigures figures =
      FiguresOf(Accuracies({{1, 0.5}, {2, 0.9}, {3, 0.9}, {4, NAN}, {5, INFINITY}}));
  EXPECT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures.at("accuracy").best->step, 2);
  EXPECT_EQ(figures.at("loss").best->step, 1);
  EXPECT_EQ(figures.at("loss").last_step, 5);
  EXPECT_EQ(figures.at("loss").last, INFINITY);
  EXPECT_EQ(FiguresOf(Accuracies({{1, NAN}})).at("accuracy").best, std::nullopt);
}

TEST(PrimaryMetric, IsTheFirstThatIsNotTheLoss) {
  EXPECT_EQ(PrimaryMetric(Accuracies({{1, 0.5}}), {}), "accuracy");
}

TEST(PrimaryMetric, IsTheLossWhereThereIsNoOther) {
  std::map<int64_t, Evaluation> evaluations;
  EXPECT_EQ(PrimaryMetric(evaluations, {"loss"}), "");
  evaluations[1].metrics = {{"loss", 1}};
  EXPECT_EQ(PrimaryMetric(evaluations, {}), "loss");
}

TEST(PrimaryMetric, IsTheFirstOfThePreferredThatThereIs) {
  auto evaluations = Accuracies({{1, 0.5}});
  evaluations[1].metrics["top_3"] = 0.9;
  EXPECT_EQ(PrimaryMetric(evaluations, {"top_3", "loss"}), "top_3");
  EXPECT_EQ(PrimaryMetric(evaluations, {"auc", "loss"}), "loss");
  EXPECT_EQ(PrimaryMetric(evaluations, {"auc"}), "accuracy");
}

}  // namespace
}  // namespace keelson
