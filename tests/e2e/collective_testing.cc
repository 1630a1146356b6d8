#include "tests/e2e/collective_testing.h"

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/e2e/job_config.h"
#include "tests/support/model_difference.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;

// The directory of the model of a job to which nothing happened.
std::string UndisturbedModel(const std::string& config, int workers) {
  static std::map<std::string, std::unique_ptr<CollectiveJob>> jobs;
  std::unique_ptr<CollectiveJob>& job = jobs[absl::StrCat(workers, config)];
  if (job == nullptr) {
    job = std::make_unique<CollectiveJob>(config, /*chief=*/true, Job::Evaluator::kNone, workers);
    job->StartAll();
    job->ExpectAllDone();
  }
  return job->model_dir();
}

int StepsOf(const std::string& config) {
  const absl::StatusOr<v1::TrainConfig> parsed =
      ParseTrainConfig(config, "the job's configuration");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return static_cast<int>(parsed->train().max_steps());
}

v1::TrainConfig FinalModelIn(const std::string& model_dir, int steps) {
  v1::TrainConfig config;
  config.mutable_checkpoint()->set_model_dir(model_dir);
  config.mutable_train()->set_max_steps(steps);
  return config;
}

}  // namespace

CollectiveJob::CollectiveJob(int max_steps, bool chief, Evaluator evaluator)
    : CollectiveJob(JobConfig(max_steps), chief, evaluator) {}

CollectiveJob::CollectiveJob(const std::string& config, bool chief, Evaluator evaluator,
                             int workers)
    : Job({.chief = chief, .ps = 0, .workers = workers, .evaluator = evaluator}, config),
      leader_(chief ? kChiefTask : WorkerTask(0)) {
  AddFlag(Role::kChief, "--compute_threads=1");
}

std::vector<Task> CollectiveJob::Trainers() const {
  std::vector<Task> tasks = TasksOf(Role::kChief);
  for (const Task& worker : TasksOf(Role::kWorker)) tasks.push_back(worker);
  return tasks;
}

void CollectiveJob::ExpectTrained(int max_steps) const {
  EXPECT_EQ(*DoneStep(model_dir()), max_steps);
  EXPECT_EQ(*VerifiedLatestStep(model_dir()), max_steps);
  EXPECT_EQ(LastReportedStep(Log(leader_)), max_steps);
}

nlohmann::json CollectiveJob::ReadJson(const std::string& file) const {
  return nlohmann::json::parse(ReadFile(JoinPath(model_dir(), file)).value_or(""), nullptr, false);
}

std::string EvenConfig(int steps) {
  return absl::StrReplaceAll(JobConfig(steps), {{"train_records: 1000", "train_records: 960"},
                                                {"layers { relu {} }", "layers { tanh {} }"}});
}

std::string SlowConfig(int steps) {
  return absl::StrReplaceAll(EvenConfig(steps), {{"batch_size: 32", "batch_size: 240"}});
}

void ExpectNothingLost(const CollectiveJob& job, const std::string& config, int workers,
                       double tolerance) {
  const int steps = StepsOf(config);
  job.ExpectTrained(steps);
  for (const Task& task : job.Trainers()) {
    EXPECT_THAT(job.Log(task), Not(HasSubstr("restored from"))) << task.ToString();
    EXPECT_THAT(job.Log(task), Not(HasSubstr("from the snapshot"))) << task.ToString();
  }
  const ModelDifference difference = DifferenceOf(
      FinalModelIn(job.model_dir(), steps), FinalModelIn(UndisturbedModel(config, workers), steps));
  EXPECT_LT(difference.relative, tolerance);
}

}  // namespace keelson
