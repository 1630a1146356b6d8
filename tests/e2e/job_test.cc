// Whole jobs of real programs, without trouble.
#include "tests/support/job.h"

#include <cstdio>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kSteps = 300;

void ExpectFinishedModel(const std::string& model_dir, int64_t step) {
  EXPECT_EQ(*DoneStep(model_dir), step);
  const auto latest = VerifiedLatestStep(model_dir);
  EXPECT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ(latest.value_or(-1), step);
}

void ExpectFinalEvaluation(const std::string& model_dir, int64_t step) {
  const auto evaluations = ReadEvaluations(model_dir);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_FALSE(evaluations->empty());
  const EvaluationLine& last = evaluations->back();
  EXPECT_EQ(last.step, step);
  for (const char* metric : {"wall_time", "loss", "accuracy"}) {
    EXPECT_TRUE(last.metrics.contains(metric)) << metric;
  }
}

TEST(JobTest, WholeClusterTrainsEvaluatesAndEnds) {
  Job job({}, JobConfig(kSteps));
  job.StartAll();
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
  ExpectFinalEvaluation(job.model_dir(), kSteps);
  EXPECT_EQ(LastReportedStep(job.Log(kChiefTask)), kSteps);
  for (const Task& task : {kChiefTask, kEvaluatorTask, PsTask(0), PsTask(1), WorkerTask(0)}) {
    EXPECT_THAT(ErrorLines(job.Log(task)), IsEmpty());
    EXPECT_THAT(job.Log(task), HasSubstr("role=" + task.ToString()));
  }
  std::printf("from the last step to the last exit: %.2f s\n",
              job.SecondsFromStepToEnd(kChiefTask, kSteps));
}

TEST(JobTest, EventFilesParse) {
  Job job({}, JobConfig(kSteps));
  job.StartAll();
  job.ExpectAllDone();
  const auto training = ReadEvents(job.model_dir());
  ASSERT_TRUE(training.ok()) << training.status();
  ASSERT_FALSE(training->empty());
  EXPECT_EQ(training->front().file_version(), "brain.Event:2");
  for (const char* tag :
       {"loss", "learning_rate", "speed/steps_per_second", "exchange/staleness"}) {
    EXPECT_EQ(LastStepOf(*training, tag), kSteps) << tag;
  }
  const auto evaluation = ReadEvents(JoinPath(job.model_dir(), "eval"));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  for (const char* tag : {"loss", "accuracy"}) {
    EXPECT_EQ(LastStepOf(*evaluation, tag), kSteps) << tag;
  }
}

TEST(JobTest, StatusFileSaysDone) {
  Job job({.ps = 1, .workers = 1}, JobConfig(100));
  job.StartAll();
  job.ExpectAllDone();
  const std::string status = ReadFile(JoinPath(job.model_dir(), "status.json")).value_or("");
  EXPECT_THAT(status, HasSubstr(R"("phase":"DONE")"));
  EXPECT_THAT(status, HasSubstr(R"("step":100)"));
}

TEST(JobTest, EvaluatorOutsideTheClusterMap) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kUnlisted}, JobConfig(kSteps));
  job.Start(kEvaluatorTask);
  job.WaitForLog(kEvaluatorTask, "role=evaluator-0");
  job.Start(PsTask(0));
  job.Start(kChiefTask);
  job.Start(WorkerTask(0));
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
  ExpectFinalEvaluation(job.model_dir(), kSteps);
}

TEST(JobTest, WithoutEvaluator) {
  Job job({.evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  job.StartAll();
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
}

TEST(JobTest, WorkerZeroLeadsAClusterWithoutChief) {
  Job job({.chief = false, .evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  job.StartAll();
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
  EXPECT_EQ(LastReportedStep(job.Log(WorkerTask(0))), kSteps);
}

TEST(JobTest, ChiefTrainsToo) {
  Job job({.workers = 0, .evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  job.AddFlag(Role::kChief, "--chief_trains");
  job.StartAll();
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
}

TEST(JobTest, ChiefAloneTrainsWithoutACluster) {
  Job job({.ps = 0, .workers = 0}, JobConfig(kSteps));
  job.Start(kChiefTask, {}, "");
  job.ExpectAllDone();
  ExpectFinishedModel(job.model_dir(), kSteps);
  ExpectFinalEvaluation(job.model_dir(), kSteps);
}

TEST(JobTest, EvaluatorAloneWatchesTheModelDirectory) {
  Job job({.ps = 0, .workers = 0}, JobConfig(kSteps));
  job.Start(kEvaluatorTask, {}, "");
  job.WaitForLog(kEvaluatorTask, "role=evaluator-0");
  job.Start(kChiefTask, {}, "");
  job.ExpectAllDone();
  ExpectFinalEvaluation(job.model_dir(), kSteps);
}

// What one process trains from a seed: the final model, and the loss of each evaluation.
struct Outcome {
  ModelValues model;
  double final_loss = 0;
};

Outcome TrainAlone(const std::string& seed_flag) {
  Job job({.ps = 0, .workers = 0}, JobConfig(kSteps));
  job.Start(kChiefTask, {seed_flag}, "");
  job.ExpectAllDone();
  Outcome outcome;
  const auto model = ReadModelValues(absl::StrCat(job.model_dir(), "/model.ckpt-", kSteps));
  EXPECT_TRUE(model.ok()) << model.status();
  if (model.ok()) outcome.model = *model;
  const auto evaluations = ReadEvaluations(job.model_dir());
  EXPECT_TRUE(evaluations.ok()) << evaluations.status();
  if (evaluations.ok()) outcome.final_loss = evaluations->back().metrics.at("loss");
  return outcome;
}

TEST(JobTest, SameSeedInOneProcessIsBitIdentical) {
  const Outcome first = TrainAlone("--seed=5");
  const Outcome second = TrainAlone("--seed=5");
  const Outcome other = TrainAlone("--seed=6");
  EXPECT_FALSE(first.model.empty());
  EXPECT_TRUE(first.model == second.model);
  EXPECT_EQ(first.final_loss, second.final_loss);
  EXPECT_FALSE(first.model == other.model);
}

}  // namespace
}  // namespace keelson
